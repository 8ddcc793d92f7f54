/* SPDX-License-Identifier: Apache-2.0 */
/* file_path: matches patterns with paths of files that a request names. */
#ifndef VETHGUARD_SRC_POLICY_DECIDE_FILE_PATH_H
#define VETHGUARD_SRC_POLICY_DECIDE_FILE_PATH_H

#include "vethguard/base/slice.h"

/* Patterns are those of URL paths: "*" stands for bytes of one segment, "**" for any segments. */

/* True if text is plain and the pattern matches it. */
bool file_path_allows(struct slice pattern, struct slice text);
/* True if some program could take text for a path that the pattern matches. Any text that is too
 * long or has a doubtful segment counts as such. */
bool file_path_denies(struct slice pattern, struct slice text);
/* True if text is the same path for every program: it begins with '/', has at most POLICY_PATH_MAX
 * bytes, no segment that is "." or "..", none but the last that is empty, no backslash, no '%' and
 * no control. */
bool file_path_is_plain(struct slice text);

#endif
