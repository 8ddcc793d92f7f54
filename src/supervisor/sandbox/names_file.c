/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "vethguard/ipc/shared_names.h"
#include "supervisor/sandbox/names_file.h"

#define NAME_BYTES 17 /* an id of 16 hex digits */

static void name_of(uint64_t id, char out[NAME_BYTES])
{
	snprintf(out, NAME_BYTES, "%016" PRIx64, id);
}

int names_file_open(int directory, uint64_t id, uint32_t limit, bool *damaged)
{
	char name[NAME_BYTES];

	name_of(id, name);
	int fd = shared_names_open_at(directory, name);
	*damaged = fd == -EBADMSG;
	if (*damaged && unlinkat(directory, name, 0) < 0)
		return -errno;
	return *damaged || fd == -ENOENT ? shared_names_create_at(directory, name, limit) : fd;
}

void names_file_remove(int directory, uint64_t id)
{
	char name[NAME_BYTES];

	name_of(id, name);
	unlinkat(directory, name, 0);
}
