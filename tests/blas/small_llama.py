"""Writes a small language model of the architecture llama with random weights, as llama.cpp's GGUF files.

Usage: small_llama.py TYPE FILE [WIDTH], with TYPE one of f32, f16, q8_0, q4_0, and 256 as the width. Equal arguments give equal files: the
seed is fixed. It needs python3-gguf. Each byte of a text is a token, so that any text will do as a prompt.
"""
import sys

import gguf
import numpy as np

LAYERS, HEADS, KEY_HEADS, CONTEXT = 2, 4, 2, 512


def main():
    width = int(sys.argv[3]) if len(sys.argv) > 3 else 256
    kind = gguf.GGMLQuantizationType[sys.argv[1].upper()]
    random = np.random.default_rng(20261124)
    writer = gguf.GGUFWriter(sys.argv[2], "llama")
    writer.add_name("random weights")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(width)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(3 * width)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_rope_dimension_count(width // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)

    tokens = ["<unk>", "<s>", "</s>", "▁"] + [f"<0x{byte:02X}>" for byte in range(256)]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL, gguf.TokenType.NORMAL] + [gguf.TokenType.BYTE] * 256
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)

    def matrix(name, rows, columns):
        # Each sum has about the size of what is summed, so that no layer drowns the others.
        values = random.standard_normal((rows, columns), dtype=np.float32) / np.float32(np.sqrt(columns))
        stored = gguf.quants.quantize(values, kind)
        writer.add_tensor(name + ".weight", stored, raw_dtype=kind)

    def vector(name):
        writer.add_tensor(name + ".weight", np.float32(1) + random.standard_normal(width, dtype=np.float32) / np.float32(8))

    matrix("token_embd", len(tokens), width)
    vector("output_norm")
    matrix("output", len(tokens), width)
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        vector(block + "attn_norm")
        matrix(block + "attn_q", width, width)
        matrix(block + "attn_k", width * KEY_HEADS // HEADS, width)
        matrix(block + "attn_v", width * KEY_HEADS // HEADS, width)
        matrix(block + "attn_output", width, width)
        vector(block + "ffn_norm")
        matrix(block + "ffn_gate", 3 * width, width)
        matrix(block + "ffn_up", 3 * width, width)
        matrix(block + "ffn_down", width, 3 * width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main()
