/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket of a sandbox that has no link (attach_kind ATTACH_LISTEN), after a restart and at its
 * end. The state is written around each step, so that a daemon that dies meanwhile leaves no file
 * that the next one does not know.
 */
#include <stdio.h>
#include <string.h>

#include "vethguard/base/log.h"
#include "supervisor/attach/attachment.h"

/* Makes the file anew, if what is there is its own or nothing is. Only then the state forgets which
 * file was its own: a foreign one is not taken for it later. Returns a descriptor, or -errno with
 * shape->why. */
static int make_again(struct attachment *a, struct gate *shape)
{
	const struct identity identity = attach_record_identity(&a->record);
	struct listen_socket *s = &a->record.listen;
	const bool known = s->inode != 0;
	int rc = known ? listen_socket_remove(s, &identity) : 0;

	snprintf(shape->why, sizeof(shape->why), "%s cannot be replaced: %s", s->path,
	        strerror(-rc));
	if (!rc && known)
		rc = listen_socket_check(s, &identity, shape->why, sizeof(shape->why));
	if (rc)
		return rc;
	s->inode = 0;
	rc = known ? state_save(a->all->state, &a->record, shape) : 0;
	snprintf(shape->why, sizeof(shape->why), "its state cannot be written: %s", strerror(-rc));
	return rc ? rc : listen_socket_open(s, &identity, !known, shape->why, sizeof(shape->why));
}

int attachment_adopt_socket(struct attachment *a, struct gate *shape)
{
	const struct listen_socket *s = &a->record.listen;
	int given = shape->packets, fd, rc;

	shape->packets = -1;
	shape->kind = GATE_SOCKET;
	fd = given < 0 ? make_again(a, shape) : given;
	if (fd < 0)
		return fd;
	rc = gate_open_socket(shape, fd, s->vsock.cid);
	if (!rc && given < 0)
		rc = state_save(a->all->state, &a->record, shape);
	if (!rc)
		return 0;
	snprintf(shape->why, sizeof(shape->why), "its socket cannot be shared, or noted: %s",
	        strerror(-rc));
	gate_close(shape);
	return rc;
}

void attachment_remove_socket(const struct attachment *a)
{
	const struct identity identity = attach_record_identity(&a->record);
	const struct listen_socket *s = &a->record.listen;
	int rc = s->path[0] && (s->inode || !a->sandbox) ? listen_socket_remove(s, &identity) : 0;

	if (rc)
		log_sandbox(LOG_LEVEL_WARN, a->record.name, "its socket %s cannot be removed: %s",
		        s->path, strerror(-rc));
}
