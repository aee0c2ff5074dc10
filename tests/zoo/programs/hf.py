"""Trains one class of transformers from a small configuration on random data: hf.py TASK.MODEL_TYPE.

The configuration is the model's default with the sizes below put in for the attributes that it has.
"""
import torch
import transformers
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import recipe

MAPPINGS = {"causal": modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
            "masked": modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
            "classify": modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
            "seq2seq": modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
            "image": modeling_auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES,
            "audio": {**modeling_auto.MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES,
                      **modeling_auto.MODEL_FOR_CTC_MAPPING_NAMES}}

WIDTH, HEADS, LAYERS, VOCABULARY, IMAGE = 64, 4, 2, 300, 64
SIZES = (
    (WIDTH, ("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "embedding_size", "word_embed_proj_dim", "emb_dim",
            "hidden_dim", "attention_hidden_size", "lru_width", "conv_dim_out", "decoder_hidden_size",
            "classifier_proj_size", "output_hidden_size", "projection_dim", "rnn_hidden_size", "d_embed")),
    (HEADS, ("num_attention_heads", "n_head", "num_heads", "encoder_attention_heads", "decoder_attention_heads",
            "n_heads", "attention_heads", "num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts",
            "num_query_heads", "linear_num_value_heads", "mamba_n_heads", "num_hash_heads")),
    (2, ("num_hidden_layers", "n_layer", "num_layers", "encoder_layers", "decoder_layers", "n_layers",
        "num_decoder_layers", "num_encoder_layers", "num_key_value_heads", "num_experts_per_tok", "moe_topk",
        "num_kv_heads", "n_kv_heads", "linear_num_key_heads", "num_hidden_groups", "num_blocks")),
    (1, ("n_group", "topk_group", "num_nextn_predict_layers", "n_shared_experts", "first_k_dense_replace",
        "mamba_n_groups")),
    (16, ("head_dim", "d_kv", "kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
         "attention_head_size", "state_size", "linear_key_head_dim", "linear_value_head_dim", "mamba_d_head",
         "expand_v", "num_conv_pos_embeddings", "conv_pos_groups", "mamba_d_state")),
    (128, ("intermediate_size", "ffn_dim", "n_inner", "d_ff", "encoder_ffn_dim", "decoder_ffn_dim", "d_inner",
          "moe_intermediate_size", "feed_forward_size", "max_position_embeddings", "n_positions", "n_ctx",
          "max_source_positions", "max_target_positions", "shared_expert_intermediate_size", "intermediate_dim",
          "ff_dim", "context_length", "max_sequence_length")),
    (VOCABULARY, ("vocab_size", "vocab_size_per_layer_input")), (IMAGE, ("image_size",)),
    (8, ("patch_size", "num_mel_bins")),
)
SIZE_OF = {name: size for size, names in SIZES for name in names}
LISTS = {"hidden_sizes": lambda i: 16 * (i + 1), "embed_dims": lambda i: 16 * (i + 1), "depths": lambda i: 1,
         "num_attention_heads": lambda i: 2, "num_heads": lambda i: 2, "conv_dim": lambda i: 32,
         "tdnn_dim": lambda i: 32, "encoder_hidden_sizes": lambda i: 16 * (i + 1), "neck_hidden_sizes": lambda i: 16}


def small(config):
    """The arguments that make this configuration small."""
    found = {}
    for name, value in config.to_dict().items():
        if isinstance(value, bool) or name.startswith("_"):
            continue
        if isinstance(value, int) and name in SIZE_OF:
            found[name] = min(value, SIZE_OF[name])
        elif isinstance(value, (list, tuple)) and name in LISTS:
            found[name] = [LISTS[name](i) for i in range(len(value))]
        elif isinstance(value, int) and name.endswith("_token_id"):
            found[name] = min(value, 2)
        elif isinstance(getattr(config, name, None), transformers.PretrainedConfig):
            found[name] = small(getattr(config, name))
    return found


def configuration(task, kind):
    default = CONFIG_MAPPING[kind]()
    sizes = small(default)
    if task in ("causal", "masked", "classify", "seq2seq"):
        sizes["pad_token_id"] = 0
    if task in ("classify", "image", "audio"):
        sizes["num_labels"] = 10
    layers = sizes.get("num_hidden_layers", 0)
    if isinstance(default.to_dict().get("layer_types"), (list, tuple)) and layers:
        sizes["layer_types"] = list(default.layer_types)[-layers:]
    return CONFIG_MAPPING[kind](**sizes)


def batch(run, task, model):
    """One random batch as the model's documentation asks for it."""
    config = model.config
    if task in ("causal", "masked", "seq2seq"):
        ids = run.integers(3, VOCABULARY, 2, 24)
        return {"input_ids": ids, "labels": ids}
    if task == "classify":
        return {"input_ids": run.integers(3, VOCABULARY, 4, 24), "labels": run.integers(0, 10, 4)}
    if task == "image":
        size = getattr(config, "image_size", IMAGE)
        size = size if isinstance(size, int) else IMAGE
        channels = getattr(config, "num_channels", 3)
        return {"pixel_values": run.rand(2, channels, size, size), "labels": run.integers(0, 10, 2)}
    if hasattr(config, "max_length") and hasattr(config, "num_mel_bins") and model.main_input_name == "input_values":
        sound = {"input_values": run.rand(2, config.max_length, config.num_mel_bins)}
    elif model.main_input_name == "input_features":
        width = getattr(config, "num_mel_bins", None) or getattr(config, "feature_projection_input_dim", 80)
        sound = {"input_features": run.rand(2, 64, width)}
    else:
        sound = {"input_values": run.rand(2, 6400)}
    ctc = type(model).__name__.endswith("ForCTC")
    return {**sound, "labels": run.integers(3, 10, 2, 4) if ctc else run.integers(0, 10, 2)}


def main():
    run = recipe.parse()
    task, kind = run.name.split(".", 1)
    model = getattr(transformers, MAPPINGS[task][kind])(configuration(task, kind))
    recipe.train(run, model, lambda m: m(**batch(run, task, m)).loss)


main()
