/* answer_origin.h - where an answer came from; record, answers, cloud and decoding loop share this
 * enum.
 */
#ifndef NET_ANSWERS_ANSWER_ORIGIN_H
#define NET_ANSWERS_ANSWER_ORIGIN_H

enum origin {
    ORIGIN_NONE,  /* there is no answer */
    ORIGIN_CALL,  /* a call to the cloud */
    ORIGIN_MEMO,  /* the answers kept in memory */
    ORIGIN_STORE, /* the file of answers on disk */
};

#endif
