/* SPDX-License-Identifier: Apache-2.0 */
/* Removes pins and files that belong to no sandbox: an attach makes them before it writes its state
 * file, and a daemon that dies in between leaves them. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "supervisor/attach/attachment.h"
#include "supervisor/os/directory.h"
#include "supervisor/recover/recover.h"

static bool is_known(struct attachments *all, const char *pin)
{
	struct attachment *a, *next;
	uint64_t id = strtoull(pin, NULL, 16);

	if (supervisor_find(all->supervisor, id))
		return true;
	HASH_ITER(hh, all->by_name, a, next)
	{
		if (!a->sandbox && a->record.id == id)
			return true;
	}
	return false;
}

/* Removes files that are named by a sandbox's id and belong to no known sandbox. Removes nothing if
 * a state file could not be read: they may belong to that sandbox. */
static void remove_orphans(struct attachments *all, DIR *dir, const char *what)
{
	bool mounted = strcmp(what, "netns") == 0;
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char path[2 * MESSAGE_PATH_MAX];

		if (all->damaged || slice_hex_digit(entry->d_name[0]) < 0 ||
		        is_known(all, entry->d_name))
			continue;
		log_warn("%s in the folder %s belongs to no sandbox, and is removed", entry->d_name,
		        what);
		snprintf(path, sizeof(path), "%s/%s", all->pins, entry->d_name);
		if (mounted)
			umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
		unlinkat(dirfd(dir), entry->d_name, 0);
	}
	if (dir)
		closedir(dir);
}

void attachments_remove_orphans(struct attachments *all)
{
	remove_orphans(all, opendir(all->pins), "netns");
	remove_orphans(all, directory_list(all->supervisor->names), "names");
	remove_orphans(all, directory_list(all->supervisor->limits), "limits");
}
