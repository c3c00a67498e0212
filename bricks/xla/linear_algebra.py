"""Lowerings of decompositions, inverses, and systems of linear equations.

What LAPACK raises an error for on the host, a singular matrix or one that is not positive
definite, cannot raise on a device: the result is infinite or NaN there. Eigenvectors, singular
vectors and the factors of ``qr`` are determined up to a sign, which may differ from numpy's.

Aesara defines no gradient of ``svd``, ``qr``, ``eig``, ``lstsq`` and ``cho_solve``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from aesara.graph.basic import Apply
from aesara.tensor import nlinalg, slinalg
from jax import lax
from jax.scipy import linalg

from bricks.xla.errors import GraphError
from bricks.xla.lowering import Context, lowering

__all__: list[str] = []


def _from_triangle(x: jax.Array, *, lower: bool, conjugate: bool = True) -> jax.Array:
    """Return the symmetric or Hermitian matrix of which one triangle is given."""
    triangle = jnp.tril(x) if lower else jnp.triu(x)
    strict = jnp.tril(x, -1) if lower else jnp.triu(x, 1)
    return triangle + (strict.conj() if conjugate else strict).T


def _fold_to_triangle(x: jax.Array, *, lower: bool) -> jax.Array:
    """Add what one triangle of a gradient has to the other, which alone is read."""
    if lower:
        return jnp.tril(x) + jnp.triu(x, 1).T
    return jnp.triu(x) + jnp.tril(x, -1).T


@lowering(nlinalg.Inv, nlinalg.MatrixInverse)
def lower_inverse(op: Any, node: Apply, context: Context) -> Callable:
    """Invert a matrix, or each matrix of a stack."""
    return lambda x: jnp.linalg.inv(jnp.asarray(x))


@lowering(nlinalg.MatrixPinv)
def lower_pseudo_inverse(op: nlinalg.MatrixPinv, node: Apply, context: Context) -> Callable:
    """Compute the pseudo-inverse; singular values within rounding of 0 count as 0.

    Numpy's bound is 1e-15 of the largest one, which float32 never reaches; this one follows the
    dtype.
    """
    return lambda x: jnp.linalg.pinv(jnp.asarray(x), hermitian=op.hermitian)


@lowering(nlinalg.TensorInv)
def lower_tensor_inverse(op: nlinalg.TensorInv, node: Apply, context: Context) -> Callable:
    """Invert an array that stands for a linear map between arrays."""
    return lambda x: jnp.linalg.tensorinv(jnp.asarray(x), ind=op.ind)


@lowering(nlinalg.TensorSolve)
def lower_tensor_solve(op: nlinalg.TensorSolve, node: Apply, context: Context) -> Callable:
    """Solve a system of linear equations between arrays."""
    dtype = node.outputs[0].type.dtype

    def tensor_solve(a: Any, b: Any) -> jax.Array:
        return jnp.linalg.tensorsolve(jnp.asarray(a, dtype), jnp.asarray(b, dtype), axes=op.axes)

    return tensor_solve


@lowering(nlinalg.Det)
def lower_determinant(op: nlinalg.Det, node: Apply, context: Context) -> Callable:
    """Compute the determinant of a matrix."""
    return lambda x: jnp.linalg.det(jnp.asarray(x))


@lowering(nlinalg.SVD)
def lower_svd(op: nlinalg.SVD, node: Apply, context: Context) -> Callable:
    """Decompose into singular values and, unless they are not wanted, their vectors."""

    def svd(x: Any) -> Any:
        return jnp.linalg.svd(
            jnp.asarray(x),
            full_matrices=bool(op.full_matrices),
            compute_uv=bool(op.compute_uv),
        )

    return svd


@lowering(nlinalg.QRFull)
def lower_qr(op: nlinalg.QRFull, node: Apply, context: Context) -> Callable:
    """Decompose into an orthogonal matrix and a triangle."""
    return lambda x: jnp.linalg.qr(jnp.asarray(x), mode=op.mode)


@lowering(nlinalg.Eig, fold=False)
def lower_eig(op: nlinalg.Eig, node: Apply, context: Context) -> Callable:
    """Compute eigenvalues and eigenvectors of any square matrix.

    XLA has no program of its own for them: on CUDA the matrix travels to LAPACK on the host and
    back, or to MAGMA where that is installed. Aesara declares them of the dtype of the matrix, so
    those of a real matrix lose their imaginary parts.
    """
    dtype = node.inputs[0].type.dtype

    def eig(x: Any) -> tuple[jax.Array, jax.Array]:
        values, vectors = jnp.linalg.eig(jnp.asarray(x))
        if dtype.startswith("complex"):
            return values, vectors
        return values.real, vectors.real

    return eig


@lowering(nlinalg.Eigh)
def lower_eigh(op: nlinalg.Eigh, node: Apply, context: Context) -> Callable:
    """Compute eigenvalues and eigenvectors of a Hermitian matrix from one of its triangles."""

    def eigh(x: Any) -> tuple[jax.Array, jax.Array]:
        values, vectors = jnp.linalg.eigh(jnp.asarray(x), UPLO=op.UPLO, symmetrize_input=False)
        return values, vectors

    return eigh


@lowering(nlinalg.EighGrad)
def lower_eigh_grad(op: nlinalg.EighGrad, node: Apply, context: Context) -> Callable:
    """Compute the gradient of eigenvalues and eigenvectors; equal eigenvalues have none."""

    def eigh_grad(
        x: Any, values: Any, vectors: Any, values_grad: Any, vectors_grad: Any
    ) -> jax.Array:
        values, vectors = jnp.asarray(values), jnp.asarray(vectors)
        differences = values[None, :] - values[:, None]
        is_diagonal = jnp.eye(len(values), dtype=bool)
        products = vectors.T @ jnp.asarray(vectors_grad)
        mixing = jnp.where(is_diagonal, 0, products / jnp.where(is_diagonal, 1, differences))
        gradient = vectors @ (vectors * jnp.asarray(values_grad) + vectors @ mixing).T
        return _fold_to_triangle(gradient, lower=op.UPLO == "L")

    return eigh_grad


def _generalized_eigh(a: Any, b: Any, *, lower: bool) -> tuple[jax.Array, jax.Array]:
    """Solve ``a v = w b v`` for a symmetric and a positive definite matrix."""
    factor = lax.linalg.cholesky(
        _from_triangle(jnp.asarray(b), lower=lower), symmetrize_input=False
    )
    half = linalg.solve_triangular(factor, _from_triangle(jnp.asarray(a), lower=lower), lower=True)
    reduced = linalg.solve_triangular(factor, half.T.conj(), lower=True)
    values, vectors = jnp.linalg.eigh(reduced)
    return values, linalg.solve_triangular(factor, vectors, lower=True, trans="C")


@lowering(slinalg.Eigvalsh)
def lower_eigvalsh(op: slinalg.Eigvalsh, node: Apply, context: Context) -> Callable:
    """Compute the eigenvalues of a symmetric matrix, with respect to a second one if given."""

    def eigvalsh(a: Any, b: Any = None) -> jax.Array:
        if b is None:
            return jnp.linalg.eigvalsh(_from_triangle(jnp.asarray(a), lower=op.lower))
        return _generalized_eigh(a, b, lower=op.lower)[0]

    return eigvalsh


@lowering(slinalg.EigvalshGrad)
def lower_eigvalsh_grad(op: slinalg.EigvalshGrad, node: Apply, context: Context) -> Callable:
    """Compute the gradients of generalized eigenvalues by both matrices."""

    def eigvalsh_grad(a: Any, b: Any, gradient: Any) -> tuple[jax.Array, jax.Array]:
        values, vectors = _generalized_eigh(a, b, lower=op.lower)
        gradient = jnp.asarray(gradient)
        by_a = (vectors * gradient) @ vectors.T
        by_b = -(vectors * (gradient * values)) @ vectors.T
        return (
            _fold_to_triangle(by_a, lower=op.lower),
            _fold_to_triangle(by_b, lower=op.lower),
        )

    return eigvalsh_grad


@lowering(nlinalg.Lstsq, fold=False)
def lower_least_squares(op: nlinalg.Lstsq, node: Apply, context: Context) -> Callable:
    """Find the solution of least squares, its residues, and the rank and singular values.

    Where numpy returns no residues because the matrix has not full rank, these are computed all
    the same: their number cannot depend on the rank.
    """

    def least_squares(a: Any, b: Any, cutoff: Any) -> tuple[jax.Array, ...]:
        a, b = jnp.asarray(a), jnp.asarray(b)
        solution, residues, rank, values = jnp.linalg.lstsq(a, b, rcond=cutoff)
        if a.shape[0] <= a.shape[1]:
            residues = jnp.zeros((0,), residues.dtype)
        return solution, residues, rank, values

    return least_squares


@lowering(slinalg.Cholesky)
def lower_cholesky(op: slinalg.Cholesky, node: Apply, context: Context) -> Callable:
    """Factorize a positive definite matrix, of which one triangle is read; else NaN."""

    def cholesky(x: Any) -> jax.Array:
        x = jnp.asarray(x)
        factor = lax.linalg.cholesky(x if op.lower else x.T.conj(), symmetrize_input=False)
        return factor if op.lower else factor.T.conj()

    return cholesky


@lowering(slinalg.CholeskySolve)
def lower_cholesky_solve(op: slinalg.CholeskySolve, node: Apply, context: Context) -> Callable:
    """Solve a system of linear equations whose matrix was factorized."""
    dtype = node.outputs[0].type.dtype

    def cholesky_solve(factor: Any, b: Any) -> jax.Array:
        factor, b = jnp.asarray(factor, dtype), jnp.asarray(b, dtype)
        return linalg.cho_solve((factor, op.lower), b)

    return cholesky_solve


def _structured(a: jax.Array, op: slinalg.Solve) -> jax.Array:
    """Read a matrix that is declared symmetric or Hermitian from its one triangle."""
    if op.assume_a == "gen":
        return a
    return _from_triangle(a, lower=op.lower, conjugate=op.assume_a != "sym")


@lowering(slinalg.Solve)
def lower_solve(op: slinalg.Solve, node: Apply, context: Context) -> Callable:
    """Solve a system of linear equations."""
    dtype = node.outputs[0].type.dtype
    structure = "pos" if op.assume_a == "pos" else "gen"

    def solve(a: Any, b: Any) -> jax.Array:
        a = _structured(jnp.asarray(a, dtype), op)
        return linalg.solve(a, jnp.asarray(b, dtype), lower=op.lower, assume_a=structure)

    return solve


@lowering(slinalg.SolveTriangular)
def lower_solve_triangular(op: slinalg.SolveTriangular, node: Apply, context: Context) -> Callable:
    """Solve a system of linear equations whose matrix is a triangle."""
    dtype = node.outputs[0].type.dtype

    def solve_triangular(a: Any, b: Any) -> jax.Array:
        return linalg.solve_triangular(
            jnp.asarray(a, dtype),
            jnp.asarray(b, dtype),
            trans=op.trans,
            lower=op.lower,
            unit_diagonal=op.unit_diagonal,
        )

    return solve_triangular


@lowering(slinalg.Expm)
def lower_matrix_exponential(op: slinalg.Expm, node: Apply, context: Context) -> Callable:
    """Compute the exponential of a matrix."""
    return lambda x: linalg.expm(jnp.asarray(x))


@lowering(slinalg.ExpmGrad)
def lower_matrix_exponential_grad(op: slinalg.ExpmGrad, node: Apply, context: Context) -> Callable:
    """Compute the gradient of the exponential of a matrix.

    It is the derivative at the transposed matrix in the direction of the gradient, which is the
    upper right block of the exponential of a matrix of four blocks (C. Van Loan, 1978).
    """

    def matrix_exponential_grad(x: Any, gradient: Any) -> jax.Array:
        transposed = jnp.asarray(x).T
        size = len(transposed)
        blocks = jnp.block(
            [[transposed, jnp.asarray(gradient)], [jnp.zeros_like(transposed), transposed]]
        )
        return linalg.expm(blocks)[:size, size:]

    return matrix_exponential_grad


@lowering(slinalg.SolveContinuousLyapunov, slinalg.BilinearSolveDiscreteLyapunov)
def lower_lyapunov(op: Any, node: Apply, context: Context) -> Callable:
    """Solve ``a x + x a^H = q``, or ``x - a x a^H = q`` for the discrete equation.

    They are solved as one system of n^2 equations, so this is for matrices of some dozen rows.
    """
    dtype = node.outputs[0].type.dtype
    is_continuous = isinstance(op, slinalg.SolveContinuousLyapunov)

    def lyapunov(a: Any, q: Any) -> jax.Array:
        a, q = jnp.asarray(a, dtype), jnp.asarray(q, dtype)
        if a.shape != q.shape:
            raise GraphError(f"the two matrices must have one shape; got {a.shape}, {q.shape}")
        one = jnp.eye(len(a), dtype=dtype)
        if is_continuous:
            system = jnp.kron(a, one) + jnp.kron(one, a.conj())
        else:
            system = jnp.eye(a.size, dtype=dtype) - jnp.kron(a, a.conj())
        return jnp.linalg.solve(system, q.reshape(-1)).reshape(q.shape)

    return lyapunov
