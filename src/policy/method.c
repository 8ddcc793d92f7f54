/* SPDX-License-Identifier: Apache-2.0 */
/* Which words may be methods. */
#include "vethguard/policy/method.h"
#include "vethguard/policy/policy.h"

enum policy_method policy_method_of(struct slice method)
{
	if (!method.n || slice_token_length(method) != method.n)
		return POLICY_METHOD_MALFORMED;
	if (method.n > POLICY_METHOD_MAX)
		return POLICY_METHOD_TOO_LONG;
	switch (method.n) {
	case 3:
		return slice_equals_ignoring_case(method, SLICE("PRI")) ? POLICY_METHOD_RESERVED
		                                                        : POLICY_METHOD_FINE;
	case 4:
		return slice_equals_ignoring_case(method, SLICE("HEAD")) &&
		                       !slice_equals(method, SLICE("HEAD"))
		               ? POLICY_METHOD_RESERVED
		               : POLICY_METHOD_FINE;
	case 5:
		return slice_equals_ignoring_case(method, SLICE("TRACE")) ? POLICY_METHOD_TRACE
		                                                          : POLICY_METHOD_FINE;
	case 7:
		return slice_equals_ignoring_case(method, SLICE("CONNECT")) &&
		                       !slice_equals(method, SLICE("CONNECT"))
		               ? POLICY_METHOD_RESERVED
		               : POLICY_METHOD_FINE;
	default:
		return POLICY_METHOD_FINE;
	}
}

const char *policy_method_fault(enum policy_method kind)
{
	switch (kind) {
	case POLICY_METHOD_MALFORMED:
		return "the method is not a token";
	case POLICY_METHOD_TOO_LONG:
		return "the method is too long";
	case POLICY_METHOD_RESERVED:
		return "the method is reserved: PRI, or HEAD or CONNECT in other letters";
	case POLICY_METHOD_TRACE:
		return "TRACE is never forwarded";
	default:
		return NULL;
	}
}
