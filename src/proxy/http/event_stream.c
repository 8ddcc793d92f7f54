/* SPDX-License-Identifier: Apache-2.0 */
/* A line ends with CR, LF or both. The LF of a pair may come later than its CR. */
#include "proxy/http/event_stream.h"

size_t event_stream_find(struct event_stream *s, struct slice text)
{
	while (s->looked_at < text.n) {
		char c = text.p[s->looked_at++];
		bool joined = c == '\n' && s->after_cr;

		s->after_cr = c == '\r';
		if (c != '\n' && c != '\r')
			continue;
		if (!joined && s->line + 1 == s->looked_at) {
			size_t n = s->looked_at;

			s->looked_at = s->line = 0;
			return n;
		}
		s->line = s->looked_at;
	}
	return 0;
}

/* The end of the line that begins at `at`; *next: where the next one begins. */
static size_t line_end(struct slice text, size_t at, size_t *next)
{
	while (at < text.n && text.p[at] != '\n' && text.p[at] != '\r')
		at++;
	*next = at + (at < text.n);
	if (*next < text.n && text.p[at] == '\r' && text.p[*next] == '\n')
		++*next;
	return at;
}

/* Sets *value if the line is one of data. */
static bool is_data(struct slice line, struct slice *value)
{
	if (slice_equals(line, SLICE("data"))) {
		*value = SLICE("");
		return true;
	}
	if (!slice_starts_with(line, SLICE("data:")))
		return false;
	*value = slice_of(line.p + 5, line.n - 5);
	if (slice_starts_with(*value, SLICE(" ")))
		*value = slice_of(value->p + 1, value->n - 1);
	return true;
}

/* The first line of a stream may begin with a byte order mark. */
static struct slice without_mark(struct slice event)
{
	return slice_starts_with(event, SLICE("\xef\xbb\xbf")) ? slice_of(event.p + 3, event.n - 3)
	                                                       : event;
}

int event_stream_split(struct slice event, struct buf *data, struct buf *others)
{
	bool any = false;
	size_t next;
	int rc = 0;

	event = without_mark(event);
	for (size_t at = 0; at < event.n && rc == 0; at = next) {
		struct slice line = slice_of(event.p + at, line_end(event, at, &next) - at), value;

		if (!is_data(line, &value)) {
			if (line.n)
				rc = buf_append_slice(others, line);
			if (line.n && rc == 0)
				rc = buf_append(others, "\n", 1);
			continue;
		}
		if (any)
			rc = buf_append(data, "\n", 1);
		if (rc == 0)
			rc = buf_append_slice(data, value);
		any = true;
	}
	return rc;
}
