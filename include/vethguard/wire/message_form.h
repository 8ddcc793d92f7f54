/* SPDX-License-Identifier: Apache-2.0 */
/* message_form: what a connection that the gateway leads to a worker carries, and the names of base URLs. */
#ifndef VETHGUARD_WIRE_MESSAGE_FORM_H
#define VETHGUARD_WIRE_MESSAGE_FORM_H

#include "vethguard/base/slice.h"

enum message_form {
	MESSAGE_FORM_PROXY = 0,     /* what is said to an explicit proxy: HTTP or SOCKS5 */
	MESSAGE_FORM_BASE_PATH = 1, /* requests in absolute-form, of clients that see the host in their URL's path */
	MESSAGE_FORM_BASE_NAME = 2, /* the same, of clients that see another name in the host's place */
	MESSAGE_FORM_COUNT
};

struct message_gateway_base {         /* a name of the gateway that stands for a host */
	struct slice name, authority; /* canonical; authority: host, or host:port */
	bool https;
};

#endif
