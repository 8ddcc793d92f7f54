/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox is known by the supervisor's number for it, which, unlike a name, is never used twice.
 */
#include "keeper/jars.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "vethguard/base/clock.h"

_Static_assert(MESSAGE_SEALED_MAX == JAR_TOKEN_MAX && MESSAGE_SEALED_END_MAX == JAR_END_MAX,
        "a message has room for any token");
_Static_assert(JAR_MAX <= MESSAGE_VALUE_MAX, "a message has room for any jar");

struct keeper_jar *jars_get(struct jars *all, uint64_t owner, const char *name)
{
	struct keeper_jar *jar;

	DL_FOREACH(all->first, jar)
	{
		if (jar->owner != owner || strcmp(jar->name, name) != 0)
			continue;
		jar->references++;
		return jar;
	}
	jar = calloc(1, sizeof(*jar));
	if (!jar)
		return NULL;
	jar->all = all;
	jar->owner = owner;
	jar->references = 1;
	snprintf(jar->name, sizeof(jar->name), "%s", name);
	DL_PREPEND(all->first, jar);
	return jar;
}

void keeper_jar_put(struct keeper_jar *jar)
{
	if (!jar || --jar->references > 0)
		return;
	DL_DELETE(jar->all->first, jar);
	secret_free(&jar->bytes);
	free(jar);
}

void keeper_jar_empty(struct keeper_jar *jar)
{
	secret_free(&jar->bytes);
	jar->sealed_ms = 0;
}

int keeper_jar_add(struct keeper_jar *jar, const struct jar_token *token)
{
	int rc = jar_add(&jar->bytes, token);

	if (rc == 0)
		jar->sealed_ms = clock_real_ms();
	return rc;
}
