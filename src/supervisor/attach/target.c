/* SPDX-License-Identifier: Apache-2.0 */
/* Where sandboxes are, so that no namespace and no interface is attached twice: a table, because
 * whoever attaches one waits for this. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/attach/process.h"
#include "supervisor/attach/attachment.h"

struct attach_place attach_place_of_netns(const struct stat *st)
{
	struct attach_place place;

	memset(&place, 0, sizeof place);
	place.netns_device = st->st_dev;
	place.netns_inode = st->st_ino;
	return place;
}

struct attach_place attach_place_of_interface(const char *interface)
{
	struct attach_place place;

	memset(&place, 0, sizeof place);
	memcpy(place.interface, interface, strnlen(interface, sizeof place.interface - 1));
	return place;
}

struct attachment *attachments_at(const struct attachments *all, const struct attach_place *place)
{
	struct attachment *a;

	HASH_FIND(at_place, all->by_place, place, sizeof *place, a);
	return a;
}

int attachment_settle_at(struct attachment *a, const struct attach_place *place)
{
	if (a->at_place.tbl)
		return 0;
	a->place = *place;
	HASH_ADD(at_place, a->all->by_place, place, sizeof a->place, a);
	return a->at_place.tbl ? 0 : -ENOMEM;
}

void attachment_leave_place(struct attachment *a)
{
	if (!a->at_place.tbl)
		return;
	HASH_DELETE(at_place, a->all->by_place, a);
	a->at_place.tbl = NULL;
}

static void find_netns(struct attachment *a)
{
	const struct identity own = {.uid = geteuid(), .gid = getegid()};
	char path[MESSAGE_PATH_MAX + 1];
	struct attach_place place;
	struct stat st;
	int fd;

	if (a->record.kind == ATTACH_PID)
		snprintf(path, sizeof path, "/proc/%d/ns/net", (int)a->record.pid);
	else
		snprintf(path, sizeof path, "%s", a->record.netns);
	fd = attach_netns_open(&own, path);
	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0) {
		place = attach_place_of_netns(&st);
		attachment_settle_at(a, &place);
	}
	close(fd);
}

void attachment_find_place(struct attachment *a)
{
	struct attach_place place;

	if (a->at_place.tbl)
		return;
	if (a->record.kind != ATTACH_INTERFACE) {
		find_netns(a);
		return;
	}
	place = attach_place_of_interface(a->record.interface);
	attachment_settle_at(a, &place);
}
