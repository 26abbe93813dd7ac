/* hf.h - inside of weights/: a folder's config.json. */
#ifndef WEIGHTS_HF_H
#define WEIGHTS_HF_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

struct err;
struct weights;

/* jansson's tree can take some 50 bytes for each byte of text, so the text is limited. */
enum { HF_JSON_MAX = 8 << 20, HF_SHARDS_MAX = 1000 };

struct hf_config {
    uint32_t layers;
    bool tied;
};

/* Read, check and present config.json as GGUF keys of w. */
int hf_config_read(struct weights *w, struct hf_config *out, const char *folder, struct err *err);

/* A JSON object from folder/file; the caller calls json_decref. */
int hf_json(struct weights *w, json_t **out, const char *folder, const char *file, struct err *err);

#endif
