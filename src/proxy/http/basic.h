/* SPDX-License-Identifier: Apache-2.0 */
/* basic: Basic credentials (RFC 7617) in a field. */
#ifndef VETHGUARD_SRC_PROXY_HTTP_BASIC_H
#define VETHGUARD_SRC_PROXY_HTTP_BASIC_H

#include "vethguard/base/slice.h"

/* Returns the base64 of a field value "Basic BASE64", or empty. */
struct slice basic_credentials(struct slice value);

#endif
