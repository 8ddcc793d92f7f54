/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_text: reads the lines, fields and values of HTTP heads, for the parsers of this module.
 * Lines of HTTP/1.1 end with CR LF only; there is no folding.
 */
#ifndef VETHGUARD_SRC_WIRE_HTTP_HTTP_TEXT_H
#define VETHGUARD_SRC_WIRE_HTTP_HTTP_TEXT_H

#include "vethguard/base/slice.h"

#define HTTP_TEXT_LENGTH_MAX 999999999999999999u /* the largest Content-Length */

/* Looks for the end of a head, its empty line, from *looked on; *looked is 0 at first. Returns the
 * head's length, 0 if the end has not come, or SIZE_MAX if a line ends wrongly. */
size_t http_text_head_end(const uint8_t *p, size_t n, size_t *looked);
/* Takes the next line off *rest, without its CR LF. *rest has a whole line. */
struct slice http_text_take_line(struct slice *rest);
/* Takes a field's line apart. *value: without the blanks around it. Returns false if the line is
 * malformed. */
bool http_text_read_field(struct slice line, struct slice *name, struct slice *value);
/* True for a field's value: visible ASCII, space, tab and bytes from 0x80 on (RFC 9110
 * section 5.5). */
bool http_text_is_value(struct slice s);
/* True for visible ASCII, at least one character. */
bool http_text_is_visible(struct slice s);

#endif
