// One WebSocket for all subscriptions of the page (docs/rest.md, "WebSocket"). It comes back by itself
// after a lost connection and goes on where each subscription stood, so that nothing is missed.
import { session } from "./api";
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
export class Live {
    socket = null;
    subscriptions = new Map();
    next = 1;
    wait = FIRST_WAIT_MS;
    timer = 0;
    listeners = new Set();
    state = "connecting";
    // Calls `call` for each message until the returned function is called.
    subscribe(fields, call, done) {
        const number = this.next++;
        this.subscriptions.set(number, { fields, call, done });
        this.connect();
        this.send(number);
        return () => {
            if (!this.subscriptions.delete(number))
                return;
            if (this.socket?.readyState === WebSocket.OPEN)
                this.socket.send(JSON.stringify({ unsubscribe: number }));
        };
    }
    watchState(call) {
        this.listeners.add(call);
        call(this.state);
        return () => {
            this.listeners.delete(call);
        };
    }
    close() {
        clearTimeout(this.timer);
        this.subscriptions.clear();
        const socket = this.socket;
        this.socket = null;
        socket?.close();
    }
    setState(state) {
        if (state === this.state)
            return;
        this.state = state;
        for (const call of this.listeners)
            call(state);
    }
    connect() {
        if (this.socket || !session.token)
            return;
        const scheme = location.protocol === "https:" ? "wss" : "ws";
        const socket = new WebSocket(`${scheme}://${location.host}/api/v1/watch`, [
            "shoal.v1",
            `shoal.token.${session.token}`,
        ]);
        this.socket = socket;
        socket.onopen = () => {
            this.wait = FIRST_WAIT_MS;
            this.setState("open");
            for (const number of this.subscriptions.keys())
                this.send(number);
        };
        socket.onmessage = (event) => this.receive(String(event.data));
        socket.onclose = () => this.lost(socket);
    }
    lost(socket) {
        if (this.socket !== socket)
            return;
        this.socket = null;
        this.setState("lost");
        if (this.subscriptions.size === 0)
            return;
        this.timer = window.setTimeout(() => this.connect(), this.wait);
        this.wait = Math.min(2 * this.wait, LONGEST_WAIT_MS);
    }
    send(number) {
        const subscription = this.subscriptions.get(number);
        if (!subscription || this.socket?.readyState !== WebSocket.OPEN)
            return;
        const { fields, last } = subscription;
        this.socket.send(JSON.stringify({ subscribe: number, ...fields, ...(last ? { after: last } : {}) }));
    }
    receive(text) {
        const message = JSON.parse(text);
        if (message.done !== undefined) {
            const subscription = this.subscriptions.get(message.done);
            this.subscriptions.delete(message.done);
            subscription?.done?.();
            return;
        }
        const subscription = this.subscriptions.get(message.sub ?? 0);
        if (!subscription || !message.event)
            return;
        if (message.id)
            subscription.last = message.id;
        subscription.call({
            event: message.event,
            data: message.data,
            ...(message.id ? { id: message.id } : {}),
        });
    }
}
export const live = new Live();
