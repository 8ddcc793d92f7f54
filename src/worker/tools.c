/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of what MCP servers said of their tools. It comes before the policy that needs it. */
#include <errno.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "worker/worker.h"

int worker_take_tools(struct worker *w, struct ipc_message *m)
{
	int fd;

	if (!reader_done(&m->body) || m->fd_count != 1)
		return -EBADMSG;
	fd = m->fds[0];
	m->fds[0] = -1;
	if (w->tools.memory)
		close(fd);
	else if (shared_names_open(&w->tools, fd) != 0)
		log_warn("the memory of tool descriptions cannot be opened: this worker begins its "
		         "own");
	return 0;
}
