/* SPDX-License-Identifier: Apache-2.0 */
/* recover: takes over the sandboxes of an earlier daemon, and suspends all or gives them to a later
 * daemon. */
#ifndef VETHGUARD_SRC_SUPERVISOR_RECOVER_RECOVER_H
#define VETHGUARD_SRC_SUPERVISOR_RECOVER_RECOVER_H

#include "supervisor/attach/attachment.h"

/* recover.c: finds everything an earlier daemon has left, and recovers it, a few sandboxes at a
 * time in the loop. on_recovered follows, unless all are stopped before. Returns 0 or -errno. */
int attachments_recover(struct attachments *all);
/* Serves a recoverable attachment under g (borrowed). policy: its path from now on; NULL: as
 * before. Calls done, also if the sandbox stays cut off. */
void attachment_recover_again(struct attachment *a, const char *policy, struct generation *g,
        attach_done done, void *context);
/* adopt.c: takes over the attachment's gate and serves its sandbox under g (takes the reference).
 * If that fails, the sandbox stays cut off. */
void attachment_adopt(struct attachment *a, struct generation *g);
/* adopt.c: logs and records why the sandbox cannot be recovered. */
void attachment_stays_cut_off(struct attachment *a, const char *text);
/* orphans.c: removes pins and files that belong to no known sandbox. */
void attachments_remove_orphans(struct attachments *all);

/* hold.c: for a sandbox that is not served. If it is an interface of the host, its rules are still
 * repaired and watched until its gate is closed. */
void attachment_hold(struct attachment *a);
/* hold.c, takeover: true if it is known whether this daemon serves the sandbox; then it counts as
 * told. */
bool attachment_report(struct attachment *a);

/* recovery_queue.c: runs the turns of all with left set, from the loop; finish is called
 * last, unless all are stopped before. Returns 0 or -errno. */
int recovery_queue_run(struct attachments *all, const struct recovery_queue *turns);
/* A client waits at its gate. Call once. */
void attachment_knocked(struct attachment *a);
void attachment_forget_knock(struct attachment *a);
/* A sandbox's state has changed: another one may have its turn. */
void recovery_queue_end(struct attachments *all);
/* Removes a, which is about to be freed. */
void recovery_queue_forget(struct attachment *a);

/* hold.c, for upgrades. */
/* Returns true if no operation is pending and nothing is half done. */
bool attachments_are_quiet(const struct attachments *all);
/* Suspends everything: expiry, ends of processes and changes of fences are not handled. */
void attachments_hold(struct attachments *all);
/* Ends that; sandboxes that were handed off are taken back, in turns. */
void attachments_release(struct attachments *all);
/* Another daemon has taken over all. on_empty follows when the workers have finished their
 * connections. */
void attachments_give_up(struct attachments *all);
/* Ends the workers now, with the time limit of a stop. */
void attachments_end_given(struct attachments *all);

#endif
