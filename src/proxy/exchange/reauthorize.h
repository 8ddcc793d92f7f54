/* SPDX-License-Identifier: Apache-2.0 */
/* reauthorize: marks what an exchange has to do after the policies have changed. */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_REAUTHORIZE_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_REAUTHORIZE_H

struct exchange;

enum marking_state {
	MARKING_NONE,
	MARKING_AGAIN, /* begins again with the credential's current value */
	MARKING_CUT,   /* ends; final */
	MARKING_STATE_COUNT
};

struct marking {
	enum marking_state state;
};

/* Changes the state, unless it is final; nothing else does. */
void marking_enter(struct exchange *ex, enum marking_state state);

#endif
