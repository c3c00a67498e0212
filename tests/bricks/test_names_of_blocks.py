"""What scripts import from Blocks is found under the same name after the import rename."""

from importlib import import_module

import pytest

#: Modules of Blocks by the name that they have here, with what they offered.
NAMES = {
    "bricks": "Brick application lazy ApplicationCall Activation Feedforward Initializable "
    "LinearLike Random RNGMixin Bias Identity LeakyRectifier Linear LinearMaxout Logistic Maxout "
    "NDimensionalSoftmax Rectifier Softmax Softplus Tanh FeedforwardSequence MLP Sequence "
    "Distribute Fork Merge Parallel LookupTable BrickWrapper WithExtraDims BatchNormalization "
    "BatchNormalizedMLP SpatialBatchNormalization",
    "bricks.algorithms": "TrainingAlgorithm UpdatesAlgorithm GradientDescent StepRule Scale "
    "BasicMomentum Momentum AdaDelta BasicRMSProp RMSProp AdaGrad Adam StepClipping "
    "VariableClipping RemoveNotFinite Restrict CompositeRule",
    "bricks.attention": "AbstractAttention GenericSequenceAttention SequenceContentAttention "
    "ShallowEnergyComputer AbstractAttentionRecurrent AttentionRecurrent",
    "bricks.base": "Brick Application BoundApplication ApplicationCall application lazy Parameters "
    "Children rename_function create_unbound_method args_to_kwargs LazyNone NoneAllocation "
    "NoneInitialization BRICK_DELIMITER",
    "bricks.bn": "BatchNormalization SpatialBatchNormalization BatchNormalizedMLP",
    "bricks.config": "config",
    "bricks.config_parser": "config Configuration",
    "bricks.conv": "Convolutional ConvolutionalTranspose Pooling MaxPooling AveragePooling "
    "ConvolutionalSequence Flattener",
    "bricks.cost": "Cost CostMatrix BinaryCrossEntropy AbsoluteError SquaredError "
    "CategoricalCrossEntropy MisclassificationRate",
    "bricks.filter": "VariableFilter get_annotation get_brick get_application_call",
    "bricks.graph": "ComputationGraph apply_dropout apply_noise collect_parameters "
    "batch_normalization apply_batch_normalization get_batch_normalization_updates",
    "bricks.graph.annotations": "Annotation add_annotation",
    "bricks.graph.bn": "batch_normalization apply_batch_normalization "
    "get_batch_normalization_updates",
    "bricks.initialization": "NdarrayInitialization Constant IsotropicGaussian Uniform Identity "
    "Orthogonal Sparse SparseND",
    "bricks.interfaces": "Activation Feedforward RNGMixin Initializable LinearLike Random",
    "bricks.log": "BACKENDS TrainingLog",
    "bricks.log.log": "TrainingLog TrainingLogBase",
    "bricks.log.sqlite": "SQLiteLog",
    "bricks.lookup": "LookupTable",
    "bricks.main_loop": "MainLoop TrainingFinish",
    "bricks.model": "Model",
    "bricks.monitoring": "evaluators aggregation",
    "bricks.monitoring.aggregation": "AggregationScheme Aggregator Mean Perplexity TakeLast "
    "Minimum Maximum Concatenate mean perplexity take_last minimum maximum concatenate "
    "MonitoredQuantity",
    "bricks.monitoring.evaluators": "AggregationBuffer MonitoredQuantityBuffer DatasetEvaluator",
    "bricks.parallel": "Parallel Fork Distribute Merge",
    "bricks.recurrent": "recurrent BaseRecurrent SimpleRecurrent LSTM GatedRecurrent Bidirectional "
    "RecurrentStack RECURRENTSTACK_SEPARATOR",
    "bricks.recurrent.base": "recurrent BaseRecurrent",
    "bricks.recurrent.architectures": "SimpleRecurrent LSTM GatedRecurrent",
    "bricks.recurrent.misc": "Bidirectional RecurrentStack RECURRENTSTACK_SEPARATOR",
    "bricks.roles": "VariableRole add_role has_roles INPUT OUTPUT COST AUXILIARY DROPOUT COLLECTED "
    "PERSISTENT PARAMETER WEIGHT FILTER BIAS INITIAL_STATE COLLECTOR BATCH_NORM_SCALE_PARAMETER "
    "BATCH_NORM_SHIFT_PARAMETER BATCH_NORM_POPULATION_STATISTICS BATCH_NORM_POPULATION_MEAN "
    "BATCH_NORM_POPULATION_STDEV ALGORITHM_STATE ALGORITHM_HYPERPARAMETER ALGORITHM_BUFFER "
    "BATCH_NORM_GRAPH_VARIABLE BATCH_NORM_OFFSET BATCH_NORM_DIVISOR BATCH_NORM_MINIBATCH_ESTIMATE",
    "bricks.search": "BeamSearch CandidateNotFoundError",
    "bricks.select": "Path Selector",
    "bricks.sequence_generators": "BaseSequenceGenerator SequenceGenerator AbstractReadout Readout "
    "AbstractEmitter AbstractFeedback TrivialEmitter SoftmaxEmitter TrivialFeedback LookupFeedback "
    "FakeAttentionRecurrent",
    "bricks.sequences": "Sequence FeedforwardSequence MLP",
    "bricks.serialization": "dump add_to_dump dump_and_add_to_dump secure_dump load "
    "load_parameters continue_training",
    "bricks.simple": "Linear Bias Maxout LinearMaxout Identity Tanh Logistic Softplus Rectifier "
    "LeakyRectifier Softmax NDimensionalSoftmax",
    "bricks.theano_expressions": "l2_norm hessian_times_vector",
    "bricks.utils": "pack unpack reraise_as dict_subset dict_union repr_attrs extract_args "
    "find_bricks change_recursion_limit print_sum print_shape ipdb_breakpoint put_hook "
    "shared_floatx shared_floatx_zeros shared_floatx_nans shared_floatx_zeros_matching shared_like "
    "check_theano_variable is_graph_input is_shared_variable",
    "bricks.utils.containers": "AnnotatingList",
    "bricks.utils.profile": "Profile Timer",
    "bricks.utils.testing": "MockAlgorithm MockMainLoop skip_if_not_available "
    "skip_if_configuration_set",
    "bricks.utils.theano_utils": "shared_floatx shared_floatx_zeros shared_floatx_nans "
    "shared_floatx_zeros_matching shared_like check_theano_variable is_graph_input "
    "is_shared_variable put_hook",
    "bricks.utils.utils": "pack unpack reraise_as dict_subset dict_union repr_attrs extract_args "
    "find_bricks change_recursion_limit print_sum print_shape ipdb_breakpoint",
    "bricks.wrappers": "BrickWrapper WithExtraDims",
    "extensions": "TrainingExtension SimpleExtension CompositeExtension FinishAfter Printing "
    "ProgressBar Timing Timestamp Predicate has_done_epochs always_true callback",
    "extensions.monitoring": "MonitoringExtension DataStreamMonitoring TrainingDataMonitoring",
    "extensions.predicates": "OnLogRecord",
    "extensions.saveload": "Checkpoint Load",
    "extensions.stopping": "FinishIfNoImprovementAfter EarlyStopping",
    "extensions.training": "SharedVariableModifier TrackTheBest",
}


@pytest.mark.parametrize("module", NAMES)
def test_every_name_of_blocks_can_be_imported(module):
    found = import_module(module)

    assert [name for name in NAMES[module].split() if not hasattr(found, name)] == []


def test_the_other_names_are_for_the_same_things():
    import bricks.log.log
    import bricks.utils.theano_utils
    import bricks.utils.utils
    from bricks.config import config

    assert bricks.log.log.TrainingLog is bricks.log.TrainingLog
    assert bricks.utils.theano_utils.shared_floatx is bricks.utils.shared_floatx
    assert bricks.utils.utils.pack is bricks.utils.pack
    assert import_module("bricks.config_parser").config is config
