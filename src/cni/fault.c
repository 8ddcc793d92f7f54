/* SPDX-License-Identifier: Apache-2.0 */
/* Faults; see cni/fault.h. */
#include <stdarg.h>
#include <stdio.h>

#include "cni/fault.h"

bool cni_fail(
        struct cni_fault *fault, enum cni_code code, const char *message, const char *details, ...)
{
	char text[CONTROL_CLIENT_TEXT_MAX];
	va_list arguments;

	va_start(arguments, details);
	vsnprintf(text, sizeof(text), details, arguments);
	va_end(arguments);
	fault->code = code;
	slice_escape_controls(slice_from_string(message), fault->message, sizeof(fault->message));
	slice_escape_controls(slice_from_string(text), fault->details, sizeof(fault->details));
	return false;
}

bool cni_fail_call(struct cni_fault *fault, enum cni_code refused, enum cni_code absent,
        const char *message, const struct control_answer *answer, int rc, const char *socket_path)
{
	char text[CONTROL_CLIENT_TEXT_MAX];
	const bool again = rc || answer->status == 503;

	return cni_fail(fault, again ? absent : refused, message, "%s",
	        control_answer_fault(answer, rc, socket_path, text));
}

json_t *cni_fault_json(const struct cni_fault *fault, const char *version)
{
	return json_pack("{s:s, s:i, s:s, s:s}", "cniVersion", version, "code", (int)fault->code,
	        "msg", fault->message, "details", fault->details);
}
