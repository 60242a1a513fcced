#pragma once

/// @file
/// The source of `lanepack::compiled`: one file that includes this, compiled with
/// LANEPACK_COMPILED=1, holds what other files of the program then only declare.

#include <lanepack/batch/padded.hpp>
#include <lanepack/batch/thd.hpp>
#include <lanepack/core/config.hpp>
#include <lanepack/corpus/open.ipp>
#include <lanepack/device/host_backend.hpp>
#include <lanepack/device/staging_ring.hpp>
#include <lanepack/loader/loader.ipp>
#include <lanepack/loader/step.ipp>
#include <lanepack/packer/make_policy.ipp>
#include <lanepack/pipeline/count_index.ipp>
#include <lanepack/pipeline/executor.ipp>
#include <lanepack/pipeline/input_runner.ipp>
#include <lanepack/pipeline/made_records.ipp>
#include <lanepack/pipeline/pipeline_source.ipp>
#include <lanepack/pipeline/thread_pool.ipp>
#include <lanepack/pipeline/unindexed_pipeline.ipp>
#include <lanepack/topology/world.ipp>

#if !LANEPACK_COMPILED
#error "compile this file with LANEPACK_COMPILED=1, as all files of the program"
#endif

namespace lanepack::inline LANEPACK_ABI {

template class ring_lease<host_backend>;
template class leased_micro_batch<thd_layout>;
template class leased_micro_batch<padded_layout>;
template class loaded_step<thd_layout>;
template class loaded_step<padded_layout>;
template class basic_loader<thd_layout>;
template class basic_loader<padded_layout>;

}  // namespace lanepack::inline LANEPACK_ABI
