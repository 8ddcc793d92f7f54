/* SPDX-License-Identifier: Apache-2.0 */
/* url_path: reading canonical paths. */
#ifndef POLICY_URL_PATH_H
#define POLICY_URL_PATH_H

#include "vethguard/policy/url.h"

/* True where url_canonical_path() would give back the same bytes, at most POLICY_PATH_MAX of them.
 */
bool url_path_is_canonical(struct slice path);

#endif
