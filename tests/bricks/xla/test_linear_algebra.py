"""Decompositions, inverses and systems of equations agree with numpy and scipy."""

import aesara
import numpy
import pytest
import scipy.linalg
from aesara import tensor
from aesara.tensor import nlinalg, slinalg

from bricks import xla

#: name -> function of matrices; computed with their gradients
WITH_GRADIENT = {
    "inverse": (nlinalg.matrix_inverse, 1),
    "inverse of a product": (lambda x: nlinalg.matrix_inverse(x.dot(x.T)), 1),
    "pseudo-inverse": (lambda x: nlinalg.pinv(x[:, :2]), 1),
    "pseudo-inverse of a symmetric matrix": (lambda x: nlinalg.pinv(x + x.T, hermitian=True), 1),
    "determinant": (nlinalg.det, 1),
    "logarithm of a determinant": (lambda x: tensor.log(abs(nlinalg.det(x))), 1),
    "trace": (nlinalg.trace, 1),
    "product of several": (lambda x, y: nlinalg.matrix_dot(x, y, x.T), 2),
    "Kronecker product": (slinalg.kron, 2),
    "exponential": (lambda x: slinalg.expm(x / 5), 1),
    "cholesky": (lambda x: slinalg.cholesky(x.dot(x.T)), 1),
    "upper cholesky": (lambda x: slinalg.Cholesky(lower=False)(x.dot(x.T)), 1),
    "cholesky that gives NaN": (lambda x: slinalg.Cholesky(on_error="nan")(x.dot(x.T)), 1),
    "solve": (slinalg.solve, 2),
    "solve for a vector": (lambda x, y: slinalg.solve(x, y[0]), 2),
    "solve with a symmetric matrix": (
        lambda x, y: slinalg.solve(x + x.T, y, assume_a="sym"),
        2,
    ),
    "solve with a lower triangle of a symmetric matrix": (
        lambda x, y: slinalg.Solve(assume_a="sym", lower=True)(x + x.T, y),
        2,
    ),
    "solve with a positive definite matrix": (
        lambda x, y: slinalg.solve(x.dot(x.T), y, assume_a="pos"),
        2,
    ),
    "continuous Lyapunov equation": (slinalg.solve_continuous_lyapunov, 2),
    "discrete Lyapunov equation": (
        lambda x, y: slinalg.solve_discrete_lyapunov(x / 9, y, method="bilinear"),
        2,
    ),
    "discrete Lyapunov equation, directly": (
        lambda x, y: slinalg.solve_discrete_lyapunov(x / 9, y, method="direct"),
        2,
    ),
    "eigenvalues of a pair": (lambda x, y: slinalg.eigvalsh(x + x.T, y.dot(y.T)), 2),
    "eigenvalues of a pair from upper triangles": (
        lambda x, y: slinalg.eigvalsh(x + x.T, y.dot(y.T), lower=False),
        2,
    ),
}
for exponent in (0, 1, 2, 3, 5, -1, -2):
    WITH_GRADIENT[f"power {exponent}"] = (
        lambda x, exponent=exponent: nlinalg.matrix_power(x, exponent),
        1,
    )
for order in (None, "fro", "inf", "-inf", 1, -1):
    WITH_GRADIENT[f"norm {order}"] = (lambda x, order=order: nlinalg.norm(x, order), 1)
for order in (None, "inf", "-inf", 1, 2, 3):
    WITH_GRADIENT[f"norm {order} of a vector"] = (
        lambda x, order=order: nlinalg.norm(abs(x[0]), order),
        1,
    )
for lower in (False, True):
    for trans in (0, 1, 2):
        WITH_GRADIENT[f"triangle, lower={lower}, trans={trans}"] = (
            lambda x, y, lower=lower, trans=trans: slinalg.solve_triangular(
                x, y, lower=lower, trans=trans
            ),
            2,
        )
for uplo in "LU":
    WITH_GRADIENT[f"eigh {uplo}"] = (
        # The sign of an eigenvector is open, its square is not.
        lambda x, uplo=uplo: [part**2 for part in nlinalg.eigh(x, uplo)],
        1,
    )

#: Aesara defines no gradient of these
WITHOUT_GRADIENT = {
    "inverses of a stack": (lambda x: nlinalg.inv(tensor.stack([x, x.T])), 1),
    "svd": (lambda x: [abs(part) for part in nlinalg.svd(x[:, :3])], 1),
    "thin svd": (lambda x: [abs(part) for part in nlinalg.svd(x[:3], full_matrices=False)], 1),
    "singular values": (lambda x: nlinalg.svd(x, compute_uv=False), 1),
    "qr": (lambda x: [abs(part) for part in nlinalg.qr(x[:, :3])], 1),
    "complete qr": (lambda x: [abs(part) for part in nlinalg.qr(x[:, :3], "complete")], 1),
    "qr, the triangle only": (lambda x: abs(nlinalg.qr(x[:3], "r")), 1),
    "raw qr": (lambda x: list(nlinalg.qr(x[:, :3], "raw")), 1),
    "unit triangle": (lambda x, y: slinalg.solve_triangular(x, y, unit_diagonal=True), 2),
    "cho_solve": (lambda x, y: slinalg.cho_solve((x, True), y), 2),
    "upper cho_solve": (lambda x, y: slinalg.cho_solve((x, False), y[0]), 2),
    "eigenvalues of one matrix": (
        lambda x: slinalg.eigvalsh(x + x.T, tensor.type_other.NoneConst.clone()),
        1,
    ),
    "tensorinv": (lambda x: nlinalg.tensorinv(x.reshape((x.shape[0], 1, x.shape[0])), ind=1), 1),
    "tensorsolve": (
        lambda x, y: nlinalg.tensorsolve(x.reshape((x.shape[0], 1, x.shape[0], 1)), y[:, :1]),
        2,
    ),
    "least squares": (
        lambda x, y: nlinalg.lstsq(x[:, :2], y, -1.0)[1:],
        2,
    ),
    "least squares with too few equations": (lambda x, y: nlinalg.lstsq(x[:2], y[:2], -1.0)[1:], 2),
}


def well_conditioned(rng, size, number):
    return [rng.normal(size=(size, size)) + 4 * numpy.eye(size) for _ in range(number)]


@pytest.mark.parametrize("name", WITH_GRADIENT)
def test_values_and_gradients_are_those_of_lapack(name, assert_agrees):
    build, number = WITH_GRADIENT[name]
    rng = numpy.random.default_rng(5)

    assert_agrees(build, [well_conditioned(rng, size, number) for size in (4, 6)], rtol=1e-7)


@pytest.mark.parametrize("name", WITHOUT_GRADIENT)
def test_values_are_those_of_lapack(name, assert_agrees):
    build, number = WITHOUT_GRADIENT[name]
    rng = numpy.random.default_rng(6)
    batches = [well_conditioned(rng, size, number) for size in (4, 6)]

    assert_agrees(build, batches, gradients=False, rtol=1e-7)


@pytest.mark.parametrize(
    "function", [nlinalg.matrix_inverse, nlinalg.det, slinalg.cholesky, nlinalg.pinv]
)
def test_a_single_number_is_a_matrix_too(function, assert_agrees):
    assert_agrees(function, [[numpy.array([[3.0]])]])


def test_only_one_triangle_of_a_symmetric_matrix_is_read():
    x = tensor.dmatrix("x")
    lower, upper = numpy.array([[4.0, 9], [1, 3]]), numpy.array([[4.0, 1], [9, 3]])
    factor = xla.function([x], [slinalg.cholesky(x), slinalg.Cholesky(lower=False)(x)])
    values = xla.function([x], [nlinalg.eigh(x)[0], nlinalg.eigh(x, "U")[0]])

    meant = numpy.array([[4.0, 1], [1, 3]])
    numpy.testing.assert_allclose(factor(lower)[0], numpy.linalg.cholesky(meant))
    numpy.testing.assert_allclose(factor(upper)[1], numpy.linalg.cholesky(meant).T)
    numpy.testing.assert_allclose(values(lower)[0], numpy.linalg.eigvalsh(meant))
    numpy.testing.assert_allclose(values(upper)[1], numpy.linalg.eigvalsh(meant))


def test_a_matrix_that_is_not_positive_definite_has_a_factor_of_nan():
    x = tensor.dmatrix("x")

    factor = xla.function([x], slinalg.cholesky(x))(-numpy.eye(2))

    assert numpy.isnan(factor).any()


def test_eigenvalues_of_any_matrix_are_of_its_dtype():
    x = tensor.dmatrix("x")
    z = tensor.zmatrix("z")
    triangle = numpy.array([[2.0, 1, 5], [0, 3, 1], [0, 0, 7]])
    turn = numpy.array([[0, -1], [1, 0j]])

    values, vectors = xla.function([x], nlinalg.eig(x))(triangle)
    turned = xla.function([z], nlinalg.eig(z)[0])(turn)

    numpy.testing.assert_allclose(numpy.sort(values), [2, 3, 7])
    numpy.testing.assert_allclose(triangle @ vectors, vectors * values, atol=1e-12)
    numpy.testing.assert_allclose(sorted(turned.imag), [-1, 1])


def test_the_solution_of_least_squares_is_that_of_scipy():
    x, y = tensor.dmatrices("x", "y")
    rng = numpy.random.default_rng(7)
    a, b = rng.normal(size=(7, 3)), rng.normal(size=(7, 2))

    solution = xla.function([x, y], nlinalg.lstsq(x, y, -1.0)[0])(a, b)

    numpy.testing.assert_allclose(solution, scipy.linalg.lstsq(a, b)[0], rtol=1e-5)


def test_the_pseudo_inverse_of_a_singular_matrix_leaves_its_null_space_out():
    x = tensor.fmatrix("x")
    singular = numpy.outer([1, 2, 3], [1, 0.5, 2]).astype("float32")

    inverse = xla.function([x], nlinalg.pinv(x))(singular)

    numpy.testing.assert_allclose(
        inverse, numpy.linalg.pinv(singular.astype("float64"), rcond=1e-9), rtol=1e-4
    )


def test_the_jacobian_of_an_inverse_is_that_of_finite_differences():
    x = tensor.dmatrix("x")
    jacobian = aesara.gradient.jacobian(nlinalg.matrix_inverse(x).flatten(), x)
    start = numpy.array([[2.0, 1], [0.5, 3]])

    result = xla.function([x], jacobian)(start)

    step = 1e-6 * numpy.eye(4).reshape(4, 2, 2)
    differences = [
        (numpy.linalg.inv(start + d) - numpy.linalg.inv(start - d)).reshape(-1) / 2e-6 for d in step
    ]
    numpy.testing.assert_allclose(
        result.reshape(4, 4), numpy.transpose(differences), rtol=1e-6, atol=1e-9
    )


def test_matrices_of_a_lyapunov_equation_have_one_shape():
    x, y = tensor.dmatrices("x", "y")
    solve = xla.function([x, y], slinalg.solve_continuous_lyapunov(x, y))

    with pytest.raises(xla.GraphError, match=r"must have one shape; got \(2, 2\), \(3, 3\)"):
        solve(numpy.eye(2), numpy.eye(3))
