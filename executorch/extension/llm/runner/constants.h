/// Names that runners know: methods without inputs that say something of a language model, and
/// methods that run it.
#pragma once

namespace executorch::extension::llm {

// What a program says of itself. All may be missing.
constexpr auto kEnableDynamicShape = "enable_dynamic_shape";
constexpr auto kBosId = "get_bos_id";
constexpr auto kEosIds = "get_eos_ids";
constexpr auto kMaxSeqLen = "get_max_seq_len";
constexpr auto kMaxContextLen = "get_max_context_len";
constexpr auto kVocabSize = "get_vocab_size";
constexpr auto kUseKVCache = "use_kv_cache";
constexpr auto kUseSDPAWithKVCache = "use_sdpa_with_kv_cache";

// Methods.
constexpr auto kVisionEncoderMethod = "vision_encoder";
constexpr auto kAudioEncoderMethod = "audio_encoder";
constexpr auto kTokenEmbeddingMethod = "token_embedding";
constexpr auto kTextModelMethod = "text_decoder";
constexpr auto kForwardMethod = "forward";
constexpr auto kPrefillMethod = "prefill";
constexpr auto kDecodeMethod = "decode";

}  // namespace executorch::extension::llm
