// SPDX-License-Identifier: Apache-2.0
// Who has heard what: set(id, n) says that the event n of the stream id arrived, wait(id, n, ms) waits for that.
export function createAcks() {
	const heard = new Map(), waiting = new Map();
	return {
		set(id, n) {
			heard.set(id, Math.max(n, heard.get(id) ?? -1));
			for (const wake of waiting.get(id) ?? [])
				wake();
		},
		wait(id, n, ms) {
			return new Promise(resolve => {
				const wakes = waiting.get(id) ?? new Set();
				const finish = came => {
					clearTimeout(timer);
					wakes.delete(wake);
					resolve(came);
				};
				const wake = () => (heard.get(id) ?? -1) >= n && finish(true);
				const timer = setTimeout(finish, ms, false);
				waiting.set(id, wakes.add(wake));
				wake();
			});
		},
	};
}
