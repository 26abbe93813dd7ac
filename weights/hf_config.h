/* hf_config.h - internal to weights/: the config.json of a Hugging Face folder. */
#ifndef WEIGHTS_HF_CONFIG_H
#define WEIGHTS_HF_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

struct err;
struct weights;

/* Limits on a JSON file's bytes and on the number of shards. jansson's tree can take some 50 bytes
 * for each byte of text, hence the first. */
enum { HF_JSON_MAX = 8 << 20, HF_SHARDS_MAX = 1000 };

struct hf_config {
    const char *arch; /* as GGUF names it: "qwen2" or "qwen3" */
    uint32_t layers;
    bool tied; /* the output head is the embedding */
};

/* Read and check config.json, and add its values to w as GGUF keys. */
int hf_config_read(struct weights *w, struct hf_config *out, struct err *err);

/* Read a JSON object from a file of the folder; the caller calls json_decref. */
int hf_json(struct weights *w, json_t **out, const char *file, struct err *err);

#endif
