/* SPDX-License-Identifier: Apache-2.0 */
/* settings: /etc/vethguard/runtime.yaml, and which real runtime stands behind this one. */
#ifndef VETHGUARD_SRC_RUNTIME_SETTINGS_H
#define VETHGUARD_SRC_RUNTIME_SETTINGS_H

#include <limits.h>

#include "vethguard/adapter/policy_name.h"
#include "runtime/fault.h"

#define SETTINGS_PATH "/etc/vethguard/runtime.yaml"
#define SETTINGS_FILE_MAX 65536 /* bytes */

enum without_policy { WITHOUT_REFUSE, WITHOUT_PASS, WITHOUT_NAME };

struct settings {
	char runtime[PATH_MAX];   /* the real runtime: absolute after runtime_settings_find() */
	char policies[PATH_MAX];  /* directory of NAME.yaml */
	char socket[PATH_MAX];    /* of the control API */
	char directory[PATH_MAX]; /* of what is kept for each container */
	enum without_policy without_policy;
	bool environment; /* variables VETHGUARD_... of a container are heard, not only annotations
	                   */
	char policy[POLICY_FILE_NAME_MAX + 1]; /* WITHOUT_NAME: the policy if none is named */
};

/* Reads the file; path NULL: SETTINGS_PATH if it exists, else what is there without it. */
bool runtime_settings_read(struct settings *s, const char *path, struct fault *fault);
/* Parses the text of such a file over the defaults. name: for faults. */
bool runtime_settings_parse(struct settings *s, const char *name, char *text, struct fault *fault);
/* Chooses the real runtime: the one that this program is called after ("vethguard-crun"), else the
 * configured one, else runc. A name is looked for where such programs are installed, not by PATH.
 */
bool runtime_settings_find(struct settings *s, const char *own_name, struct fault *fault);

#endif
