/* find.h - where the files of a model are, given what people call it.
 *
 * A name is one of these, the first that applies:
 *   PATH           a file or a folder that exists
 *   FOLDER:TYPE    the GGUF file of this type in a folder, as in models:Q4_K_M
 *   ORG/NAME       a repository in the cache that Hugging Face's programs share
 *   ORG/NAME:TYPE  the GGUF file of this type in such a repository
 * The cache is $HF_HUB_CACHE, else $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else
 * ~/.cache/huggingface/hub; an empty variable counts as unset. In it, models--ORG--NAME/refs/main
 * names the folder in snapshots/ that is used. Without refs/main there must be exactly one.
 * Source: Hugging Face's guide "Understand caching".
 *
 * A folder without model.safetensors and its index stands for its only GGUF file, if it has one.
 * TYPE is a part of the file's name, in any case: it begins after - . _ or / and ends before - . or
 * /, so that Q4_K is not Q4_K_M. Or it is the whole file name, with or without .gguf. With TYPE,
 * and in the cache, sub-folders are searched as well, three levels deep; the parts of a sharded
 * file count as one. Files mmproj* and *imatrix* are no models.
 *
 * Nothing is written and no network is used. Links are followed wherever they lead. */
#ifndef WEIGHTS_FIND_H
#define WEIGHTS_FIND_H

#include <stdbool.h>
#include <stddef.h>

struct err;

enum { FIND_PATH = 4096 }; /* bytes of a path, with the final zero */

/* Write the path that a name stands for; a path that exists is copied unchanged. ERR_IO: there is
 * nothing of that name; ERR_FORMAT: TYPE or the snapshot is missing or ambiguous, or the cache is
 * damaged; ERR_NOMEM. If a download would help, the message ends with the command for it. */
int find_model(char out[FIND_PATH], const char *name, struct err *err);

bool find_is_folder(const char *path);
bool find_ends(const char *s, const char *end); /* s ends with end */

/* Write the folder of the repository, CACHE/models--ORG--NAME, if a path is a snapshot in it or
 * leads into one; else return false. */
bool find_repository(char out[FIND_PATH], const char *path);

/* Write "; to fetch it: hf download ORG/NAME FILE" for a path in a snapshot (without FILE for the
 * snapshot itself), and "" for any other path. */
void find_hint(char *out, size_t room, const char *path);

/* ERR_FORMAT, with how to fetch the file, if p[n], the first bytes of path, are a Git LFS pointer.
 */
int find_no_pointer(const char *path, const void *p, size_t n, struct err *err);

/* Split the name of one part of a sharded GGUF file, "STEM-00001-of-00003.gguf". *stem becomes the
 * length of what is before "-00001", directories included; *number counts from 1. */
bool find_shard(const char *path, size_t *stem, unsigned *number, unsigned *count);

#endif
