/* chat_bytes.h - a tokenizer of bytes, each with its value as id, with the marks of a chat. */
#ifndef TESTS_SUPPORT_CHAT_BYTES_H
#define TESTS_SUPPORT_CHAT_BYTES_H

#include <string.h>

#include "kernels/sys/base.h"
#include "kernels/sys/text.h"
#include "model/text/tokenizer.h"
#include "model/text/vocabulary.h"
#include "tests/support/test.h"

static const char *const chat_bytes_marks[] = { "<|im_start|>", "<|im_end|>", "<think>",
                                                "</think>" };

/* Open it with the first `marks` of these, whose ids are 256 and up. */
static inline struct tokenizer *chat_bytes_open(const char *template, size_t marks)
{
    static char letters[256][4];
    static struct str pieces[260];
    static int types[260];
    struct tokenizer *t;
    struct err err;
    uint32_t next = 256;
    for (uint32_t b = 0; b < 256; b++) {
        bool self = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        pieces[b] = (struct str){ letters[b], text_encode(letters[b], self ? b : next++) };
        types[b] = PIECE_NORMAL;
    }
    for (size_t i = 0; i < 4; i++) {
        pieces[256 + i] = (struct str){ chat_bytes_marks[i], strlen(chat_bytes_marks[i]) };
        types[256 + i] = i < 2 ? PIECE_CONTROL : PIECE_USER;
    }
    struct vocabulary v = { .path = "bytes", .pieces = pieces, .types = types };
    v.count = 256 + marks;
    v.template = (struct str){ template, template ? strlen(template) : 0 };
    CHECK(tokenizer_build(&t, &v, &err) == OK);
    return t;
}

#endif
