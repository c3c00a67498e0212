"""A script of Fuel's needs its imports renamed and nothing else: names and orders of arguments."""

import importlib
import inspect
import re

import pytest

# By module: names, with their first arguments in order where somebody may give them by position.
# Left out, because they are how Fuel worked inside: BackgroundProcess of `transformers`, and
# refresh_lock and Unlocker of `utils.lock`, whose locks had to be kept alive.
NAMES = {
    "config_parser": "config Configuration",
    "exceptions": "AxisLabelsMismatchError ConfigurationError MissingInputFiles NeedURLPrefix",
    "datasets": """Dataset IterableDataset IndexableDataset H5PYDataset MNIST CIFAR10 CIFAR100
        BinarizedMNIST Iris Adult SVHN CelebA CalTech101Silhouettes DogsVsCats TextFile
        OneBillionWord""",
    "datasets.base": """Dataset(sources,axis_labels) IterableDataset(iterables,sources,axis_labels)
        IndexableDataset(indexables,start,stop,sources,axis_labels)""",
    "datasets.hdf5": """H5PYDataset(file_or_path,which_sets,subset,load_in_memory,driver,
        sort_indices,sources,axis_labels)
        PytablesDataset(path,sources,start,stop,data_node,sources_in_file)""",
    "datasets.adult": "Adult(which_sets)",
    "datasets.billion": "OneBillionWord(which_set,which_partitions,dictionary)",
    "datasets.binarized_mnist": "BinarizedMNIST(which_sets)",
    "datasets.caltech101_silhouettes": "CalTech101Silhouettes(which_sets,size)",
    "datasets.celeba": "CelebA(which_format,which_sets)",
    "datasets.cifar10": "CIFAR10(which_sets)",
    "datasets.cifar100": "CIFAR100(which_sets)",
    "datasets.dogs_vs_cats": "DogsVsCats(which_sets)",
    "datasets.imagenet": "ILSVRC2010(which_sets) ILSVRC2012(which_sets)",
    "datasets.iris": "Iris(which_sets)",
    "datasets.mnist": "MNIST(which_sets)",
    "datasets.svhn": "SVHN(which_format,which_sets)",
    "datasets.text": """TextFile(files,dictionary,bos_token,eos_token,unk_token,level,preprocess,
        encoding)""",
    "datasets.toy": """Spiral(num_examples,classes,cycles,noise) SwissRoll(num_examples,noise)""",
    "datasets.youtube_audio": "YouTubeAudio(youtube_id)",
    "iterator": "DataIterator(data_stream,request_iterator,as_dict)",
    "schemes": """IterationScheme BatchSizeScheme ConstantScheme(batch_size,num_examples,times)
        BatchScheme(examples,batch_size) SequentialScheme(examples,batch_size)
        ShuffledScheme(examples,batch_size,rng,sorted_indices) IndexScheme(examples)
        SequentialExampleScheme(examples) ShuffledExampleScheme(examples,rng)
        ConcatenatedScheme(schemes) cross_validation(scheme_class,num_examples,num_folds,strict)""",
    "streams": """AbstractDataStream(iteration_scheme,axis_labels)
        DataStream(dataset,iteration_scheme,axis_labels)
        ServerDataStream(sources,produces_examples,host,port,hwm,axis_labels)""",
    "transformers": """Transformer(data_stream,produces_examples) AgnosticTransformer
        SourcewiseTransformer(data_stream,produces_examples,which_sources)
        AgnosticSourcewiseTransformer ExpectsAxisLabels SortMapping(key,reverse)
        Mapping(data_stream,mapping,add_sources,mapping_accepts) Flatten(data_stream)
        ScaleAndShift(data_stream,scale,shift) Cast(data_stream,dtype) ForceFloatX(data_stream)
        Filter(data_stream,predicate) Cache(data_stream,iteration_scheme) Unpack(data_stream)
        Batch(data_stream,iteration_scheme,strictness) Merge(data_streams,sources,axis_labels)
        Padding(data_stream,mask_sources,mask_dtype) MultiProcessing(data_stream,max_store)
        Rename(data_stream,names,on_non_existent) FilterSources(data_stream,sources)""",
    "transformers.defaults": """ToBytes(data_stream) uint8_pixels_to_floatX(which_sources)
        rgb_images_from_encoded_bytes(which_sources)""",
    "transformers.image": """ImagesFromBytes(data_stream,color_mode)
        MinimumImageDimensions(data_stream,minimum_shape,resample)
        RandomFixedSizeCrop(data_stream,window_shape)
        Random2DRotation(data_stream,maximum_rotation,resample)""",
    "transformers.sequences": """NGrams(ngram_order,data_stream,target_source)
        Window(offset,source_window,target_window,overlapping,data_stream,target_source)""",
    "server": """start_server(data_stream,port,hwm) send_arrays(socket,arrays,stop)
        recv_arrays(socket)""",
    "utils": """Subset(list_or_slice,original_num_examples) do_not_pickle_attributes buffer_
        find_in_data_path(filename) remember_cwd iterable_fancy_indexing lazy_property_factory""",
    "utils.cache": "cache_file copy_from_server_to_local",
    "utils.disk": "disk_usage safe_mkdir(folder_name,force_perm) check_enough_space",
    "utils.formats": "open_(filename,mode,encoding) tar_open",
    "utils.lock": """get_lock release_lock get_writelock release_writelock get_readlock(pid,path)
        release_readlock""",
    "utils.parallel": "producer_consumer(producer,consumer,addr,port,context)",
    "converters": "all_converters __version__",
    "converters.base": """check_exists(required_files) fill_hdf5_file(h5file,data)
        progress_bar(name,maxval,prefix) MissingInputFiles""",
    "downloaders": "all_downloaders",
    "downloaders.base": """default_downloader(directory,urls,filenames,url_prefix,clear)
        download(url,file_handle,chunk_size) filename_from_url(url) ensure_directory_exists
        progress_bar NeedURLPrefix""",
}
COMMANDS = """adult binarized_mnist caltech101_silhouettes celeba cifar10 cifar100 dogs_vs_cats
    ilsvrc2010 ilsvrc2012 iris mnist svhn youtube_audio"""
NAMES |= {
    f"{package}.{name}": "fill_subparser"
    for package in ("converters", "downloaders")
    for name in COMMANDS.split()
}
ATTRIBUTES = {
    "datasets.base.Dataset": """example_iteration_scheme get_example_stream open close reset
        next_epoch get_data apply_default_transformers filter_sources default_transformers
        provides_sources""",
    "datasets.hdf5.H5PYDataset": """create_split_array get_all_splits get_all_sources
        get_provided_sources get_vlen_sources get_axis_labels get_subsets interface_version
        data_sources source_shapes subsets load""",
    "utils.Subset": """subset_of empty_subset sorted_fancy_indexing slice_to_numerical_args
        get_list_representation index_within_subset is_list is_empty num_examples""",
    "schemes.IterationScheme": "get_request_iterator",
    "streams.AbstractDataStream": """produces_examples get_data reset close next_epoch
        get_epoch_iterator iterate_epochs""",
    "streams.DataStream": "default_stream",
    "transformers.Transformer": "transform_example transform_batch",
    "transformers.AgnosticTransformer": "transform_any",
    "transformers.SourcewiseTransformer": "transform_source_example transform_source_batch",
    "transformers.AgnosticSourcewiseTransformer": "transform_any_source",
    "transformers.ExpectsAxisLabels": "verify_axis_labels",
    "config_parser.Configuration": "add_config",
}


@pytest.mark.parametrize("module", NAMES)
def test_names_of_fuel_are_in_their_modules_with_their_arguments_in_order(module):
    found = importlib.import_module(f"fuel_data.{module}")
    for name, arguments in re.findall(r"(\w+)(?:\(([^)]*)\))?", NAMES[module]):
        assert hasattr(found, name), name
        if arguments:
            expected = re.split(r",\s*", arguments)
            assert list(inspect.signature(getattr(found, name)).parameters)[: len(expected)] == (
                expected
            )


@pytest.mark.parametrize("path", ATTRIBUTES)
def test_classes_of_fuel_have_their_attributes(path):
    module, _, name = path.rpartition(".")
    class_ = getattr(importlib.import_module(f"fuel_data.{module}"), name)

    assert [
        attribute for attribute in ATTRIBUTES[path].split() if not hasattr(class_, attribute)
    ] == []
