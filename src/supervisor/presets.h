/* SPDX-License-Identifier: Apache-2.0 */
/* presets: where the policy presets of this build are. */
#ifndef SUPERVISOR_PRESETS_H
#define SUPERVISOR_PRESETS_H

#include <limits.h>

/* policies/presets of the source tree this program was built in, else that of the installation.
 * Returns out. */
const char *presets_directory(char out[PATH_MAX]);

#endif
