/* SPDX-License-Identifier: Apache-2.0 */
/* pkt: git's pkt-lines (gitprotocol-common(5)): four hex digits of length, themselves included,
 * then the text. */
#ifndef VETHGUARD_SRC_GIT_PKT_H
#define VETHGUARD_SRC_GIT_PKT_H

#include "vethguard/base/slice.h"

#define PKT_MAX 65520u /* bytes, with the length */

enum pkt {
	PKT_BAD,   /* no length, one beyond the text or PKT_MAX, an empty line, 0002 or 0003 */
	PKT_END,   /* nothing is left */
	PKT_FLUSH, /* 0000 */
	PKT_DELIM, /* 0001 */
	PKT_LINE
};

/* Takes the next pkt-line off rest. *line: the text of a PKT_LINE, with the line feed if it ends in
 * one. */
enum pkt pkt_next(struct slice *rest, struct slice *line);
/* Returns the line without the line feed at its end, if there is one. */
struct slice pkt_chomp(struct slice line);
/* Takes an object's id of n bytes, written as lower-case hex digits, off the line. Returns false if
 * the line does not begin with one. */
bool pkt_id(struct slice *line, size_t n, uint8_t *out);
/* True if the text has no control characters. */
bool pkt_is_text(struct slice text);

#endif
