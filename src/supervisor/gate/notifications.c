/* SPDX-License-Identifier: Apache-2.0 */
/* The pair of sockets by which changes of rules and links are heard: in a gate, in the host's
 * namespace, or for all gates. */
#include <unistd.h>

#include "supervisor/gate/watch.h"

int gate_notifications_open(struct gate_notifications *notifications, struct loop *loop, int rules,
        int links, void (*on_rules)(struct loop_io *io, unsigned events),
        void (*on_links)(struct loop_io *io, unsigned events))
{
	int rc = rules < 0 ? rules : links < 0 ? links : 0;

	*notifications =
	        (struct gate_notifications){.open = true, .rules.fd = rules, .links.fd = links};
	if (!rc)
		rc = loop_io_open_level(loop, &notifications->rules, rules, LOOP_READ, on_rules);
	if (!rc)
		rc = loop_io_open_level(loop, &notifications->links, links, LOOP_READ, on_links);
	if (rc)
		gate_notifications_close(notifications);
	return rc;
}

void gate_notifications_close(struct gate_notifications *notifications)
{
	const int fds[] = {notifications->rules.fd, notifications->links.fd};

	if (!notifications->open)
		return;
	loop_io_close(&notifications->rules);
	loop_io_close(&notifications->links);
	for (size_t i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	*notifications = (struct gate_notifications){.open = false};
}
