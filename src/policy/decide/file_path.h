/* SPDX-License-Identifier: Apache-2.0 */
/* file_path: patterns for paths of files in what a request says. */
#ifndef VETHGUARD_SRC_POLICY_DECIDE_FILE_PATH_H
#define VETHGUARD_SRC_POLICY_DECIDE_FILE_PATH_H

#include "vethguard/base/slice.h"

/* A pattern as for a URL's path: "*" stands for bytes of one segment, "**" for any segments. */

/* True if the pattern matches text, and every program finds the same file there: text has no
 * segment that is empty, "." or "..", no backslash, no '%' and no control. */
bool file_path_allows(struct slice pattern, struct slice text);
/* True if some program could find a file there that the pattern matches: of a text that has one
 * of these, that is taken to be so. */
bool file_path_denies(struct slice pattern, struct slice text);
/* True if text is the same path for every program. */
bool file_path_is_plain(struct slice text);

#endif
