/* SPDX-License-Identifier: Apache-2.0 */
/* The targets of all sandboxes, so that no namespace or interface is attached twice: a hash table,
 * because every attach waits for this lookup. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/attach/process.h"
#include "supervisor/attach/attachment.h"

struct attach_target attach_target_of_netns(const struct stat *st)
{
	struct attach_target target;

	memset(&target, 0, sizeof(target));
	target.netns_device = st->st_dev;
	target.netns_inode = st->st_ino;
	return target;
}

struct attach_target attach_target_of_interface(const char *interface)
{
	struct attach_target target;

	memset(&target, 0, sizeof(target));
	memcpy(target.interface, interface, strnlen(interface, sizeof(target.interface) - 1));
	return target;
}

struct attachment *attachments_at(const struct attachments *all, const struct attach_target *target)
{
	struct attachment *a;

	HASH_FIND(at_target, all->by_target, target, sizeof(*target), a);
	return a;
}

int attachment_settle_at(struct attachment *a, const struct attach_target *target)
{
	if (a->at_target.tbl)
		return 0;
	a->target = *target;
	HASH_ADD(at_target, a->all->by_target, target, sizeof(a->target), a);
	return a->at_target.tbl ? 0 : -ENOMEM;
}

void attachment_leave_target(struct attachment *a)
{
	if (!a->at_target.tbl)
		return;
	HASH_DELETE(at_target, a->all->by_target, a);
	a->at_target.tbl = NULL;
}

/* Finds the namespace that the path leads to now. Returns 0 or -errno. */
static int look_at(const char *path, struct attach_target *target)
{
	const struct identity own = {.uid = geteuid(), .gid = getegid()};
	struct stat st;
	int fd = attach_netns_open(&own, path), rc;

	if (fd < 0)
		return fd;
	rc = fstat(fd, &st) < 0 ? -errno : 0;
	if (!rc)
		*target = attach_target_of_netns(&st);
	close(fd);
	return rc;
}

static void find_netns(struct attachment *a)
{
	char path[MESSAGE_PATH_MAX + 1];
	struct attach_target target;

	if (a->record.kind == ATTACH_PID)
		snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)a->record.pid);
	else
		snprintf(path, sizeof(path), "%s", a->record.netns);
	if (look_at(path, &target) == 0)
		attachment_settle_at(a, &target);
}

bool attachment_netns_is_gone(const struct attachment *a)
{
	struct attach_target target;
	int rc;

	if (a->record.kind != ATTACH_NETNS)
		return false;
	rc = look_at(a->record.netns, &target);
	if (rc) /* other errors are temporary */
		return rc == -ENOENT || rc == -EINVAL;
	return a->at_target.tbl && memcmp(&target, &a->target, sizeof(target)) != 0;
}

void attachment_find_target(struct attachment *a)
{
	struct attach_target target;

	if (a->at_target.tbl || a->record.kind == ATTACH_LISTEN || a->record.kind == ATTACH_SESSION)
		return;
	if (a->record.kind != ATTACH_INTERFACE) {
		find_netns(a);
		return;
	}
	target = attach_target_of_interface(a->record.interface);
	attachment_settle_at(a, &target);
}
