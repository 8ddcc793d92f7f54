/* SPDX-License-Identifier: Apache-2.0 */
/* pkt: git's pkt-lines (gitprotocol-common(5)): four hex digits of length, themselves included,
 * then the text. */
#ifndef VETHGUARD_SRC_GIT_PKT_H
#define VETHGUARD_SRC_GIT_PKT_H

#include "vethguard/base/slice.h"

#define PKT_MAX 65520u /* bytes, with the length */

enum pkt {
	PKT_BAD,   /* no length, one beyond the text, a line without text, or 0002 and 0003 */
	PKT_END,   /* nothing is left */
	PKT_FLUSH, /* 0000 */
	PKT_DELIM, /* 0001 */
	PKT_LINE
};

/* Takes the next one off rest. *line is the text of a line, with the line feed that it may end
 * in. */
enum pkt pkt_next(struct slice *rest, struct slice *line);
/* The line without one line feed at its end. */
struct slice pkt_chomp(struct slice line);
/* Takes `n` bytes of an object's id, in small hex digits, off the line. Returns false if they are
 * not there. */
bool pkt_id(struct slice *line, size_t n, uint8_t *out);
/* True if the text has no controls. */
bool pkt_is_text(struct slice text);

#endif
