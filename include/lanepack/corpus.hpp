#pragma once

/// @file
/// Everything in `corpus/`.

#include <lanepack/corpus/any_source.hpp>
#include <lanepack/corpus/block_cache.hpp>
#include <lanepack/corpus/cache_file.hpp>
#include <lanepack/corpus/cache_key.hpp>
#include <lanepack/corpus/checks.hpp>
#include <lanepack/corpus/concatenated.hpp>
#include <lanepack/corpus/concept.hpp>
#include <lanepack/corpus/document.hpp>
#include <lanepack/corpus/length_histogram.hpp>
#include <lanepack/corpus/lengths.hpp>
#include <lanepack/corpus/megatron.hpp>
#include <lanepack/corpus/megatron_index.hpp>
#include <lanepack/corpus/megatron_loss_mask.hpp>
#include <lanepack/corpus/megatron_options.hpp>
#include <lanepack/corpus/memory.hpp>
#include <lanepack/corpus/npy.hpp>
#include <lanepack/corpus/open.hpp>
#include <lanepack/corpus/open_options.hpp>
#include <lanepack/corpus/opened.hpp>
#include <lanepack/corpus/part_names.hpp>
#include <lanepack/corpus/source_part.hpp>
#include <lanepack/corpus/summarize.hpp>
#include <lanepack/corpus/summary.hpp>
#include <lanepack/corpus/text_documents.hpp>
#include <lanepack/corpus/text_files.hpp>
#include <lanepack/corpus/text_scan.hpp>
#include <lanepack/corpus/token_file.hpp>
#include <lanepack/corpus/token_file_options.hpp>
#include <lanepack/corpus/token_reads.hpp>
#include <lanepack/corpus/token_type.hpp>
