/* SPDX-License-Identifier: Apache-2.0 */
/*
 * method: which request methods are refused before any rule is asked. Used by the proxy in every version of HTTP, by
 * `policy explain` and by `audit suggest`. Any token is a method (RFC 9110 section 9.1), known or not, and is
 * compared byte by byte. There is no table of permitted methods.
 */
#ifndef VETHGUARD_POLICY_METHOD_H
#define VETHGUARD_POLICY_METHOD_H

#include "vethguard/base/slice.h"

enum policy_method {
	POLICY_METHOD_FINE,      /* the policy decides */
	POLICY_METHOD_MALFORMED, /* not a token */
	POLICY_METHOD_TOO_LONG,  /* longer than POLICY_METHOD_MAX */
	/* PRI, the first word of HTTP/2's preface (RFC 9113 section 3.4); or HEAD or CONNECT in another letter case.
	 * HEAD and CONNECT say whether content follows, so a server that ignores the case and a proxy that does not
	 * would disagree about where a message ends. */
	POLICY_METHOD_RESERVED,
	/* TRACE in any letter case: its response repeats the request as the server saw it (RFC 9110 section 9.3.8),
	 * with the credentials. */
	POLICY_METHOD_TRACE
};

enum policy_method policy_method_of(struct slice method);
/* One sentence that says why the method is refused whatever the policy says; NULL for POLICY_METHOD_FINE. */
const char *policy_method_fault(enum policy_method kind);

#endif
