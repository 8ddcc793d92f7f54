/* SPDX-License-Identifier: Apache-2.0 */
/* event_stream: text/event-stream, as the HTML standard has it (section 9.2, server-sent events).
 */
#ifndef VETHGUARD_SRC_PROXY_HTTP_EVENT_STREAM_H
#define VETHGUARD_SRC_PROXY_HTTP_EVENT_STREAM_H

#include "vethguard/base/buf.h"

/* Where the search for the end of an event stands. Zeros begin it. */
struct event_stream {
	size_t looked_at; /* bytes of the text */
	size_t line;      /* where the last line begins */
	bool after_cr;    /* a line has ended with CR, to which a LF may still belong */
};

/* Finds the end of the first event in text. Returns the event's length with the empty line that
 * ends it, or 0 if that has not come. The caller takes the event off before the next call. */
size_t event_stream_find(struct event_stream *s, struct slice text);
/* Splits an event: appends its data, joined by line ends, and its other lines. Returns 0 or -errno.
 */
int event_stream_split(struct slice event, struct buf *data, struct buf *others);

#endif
