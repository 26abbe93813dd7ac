/* find.h - where the files of a model are, given what people call it.
 *
 * A name is one of these, the first that applies:
 *   PATH           a file or a folder that exists
 *   FOLDER:TYPE    the GGUF file of this type in a folder, as in models:Q4_K_M
 *   ORG/NAME       a repository in the cache that Hugging Face's programs share
 *   ORG/NAME:TYPE  the GGUF file of this type in such a repository
 * The cache is $HF_HUB_CACHE, $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub or
 * ~/.cache/huggingface/hub, by the first variable that is set and not empty. In it,
 * models--ORG--NAME/refs/main names the folder in snapshots/ (Hugging Face's "Understand caching").
 *
 * A folder without model.safetensors and its index stands for its only GGUF file, if it has one.
 * TYPE is a part of the file's name, or all of it, in any case. It begins after - . _ or / and ends
 * before - . or /, so Q4_K is not Q4_K_M. With TYPE, and in the cache, sub-folders are searched,
 * three levels deep. A sharded file is its first part. mmproj* and *imatrix* are no models.
 *
 * Nothing is written and no network is used. Links are followed wherever they lead. */
#ifndef WEIGHTS_FIND_H
#define WEIGHTS_FIND_H

#include <stdbool.h>
#include <stddef.h>

struct err;

enum { FIND_PATH = 4096 }; /* bytes of a path, with the final zero */

/* Write the path that a name stands for; a path that exists is copied unchanged. ERR_IO: there is
 * nothing of that name; ERR_FORMAT: several files fit, or refs/main is damaged. If a download would
 * help, the message ends with the command for it. */
int find_model(char out[FIND_PATH], const char *name, struct err *err);

bool find_is_folder(const char *path);
bool find_ends(const char *s, const char *end); /* s ends with end */

/* Write CACHE/models--ORG--NAME for a path in one of its snapshots; false for any other path. */
bool find_repository(char out[FIND_PATH], const char *path);

/* Write "; to fetch it: COMMAND" for a path in a snapshot, and "" for any other path. */
void find_hint(char *out, size_t room, const char *path);

/* ERR_FORMAT, with how to fetch the file, if p[n], its first bytes, are a Git LFS pointer. */
int find_no_pointer(const char *path, const void *p, size_t n, struct err *err);

/* Split the name of one part of a sharded GGUF file, "STEM-00001-of-00003.gguf". *stem becomes the
 * length of what is before "-00001", directories included; *number counts from 1. */
bool find_shard(const char *path, size_t *stem, unsigned *number, unsigned *count);

#endif
