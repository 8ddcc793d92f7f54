/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a worker that cannot go on: it tells the supervisor why. */
#include <stdarg.h>
#include <stdio.h>

#include "vethguard/base/log.h"
#include "worker/worker.h"

void worker_fail(struct worker *w, const char *format, ...)
{
	char text[512];
	uint8_t message[1024];
	struct message_text body;
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	body.text = slice_from_string(text);
	log_error("%s", text);
	if (w->supervisor.open)
		ipc_send(&w->supervisor, message,
		        message_text_encode(message, sizeof(message), MESSAGE_FAILED, 0, &body),
		        NULL, 0);
	w->status = WORKER_EXIT_FAILED;
	loop_stop(w->loop);
}
