/* SPDX-License-Identifier: Apache-2.0 */
/* charset: whether what a response is written in can be searched for a credential. */
#ifndef PROXY_CHARSET_H
#define PROXY_CHARSET_H

#include "proxy/http.h"

/* False where a Content-Type names a character set (RFC 9110 section 8.3.2) in which a letter of
 * ASCII is not its own byte, or one that is not known here. Read generously: whatever some client
 * might take for the parameter is one. */
bool charset_is_searchable(const struct http_fields *fields);

#endif
