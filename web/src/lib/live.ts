// One WebSocket for all subscriptions of the page (docs/rest.md, "WebSocket"). It comes back by itself
// after a lost connection and goes on where each subscription stood, so that nothing is missed.
import { session } from "./api";

export interface Message {
  event: string;
  id?: string;
  data: unknown;
}

interface Subscription {
  fields: Record<string, unknown>;
  call: (message: Message) => void;
  done?: (() => void) | undefined;
  last?: string;
}

export type Connection = "connecting" | "open" | "lost";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
const AGAIN_MS = 2000;

export class Live {
  private socket: WebSocket | null = null;
  private subscriptions = new Map<number, Subscription>();
  private next = 1;
  private wait = FIRST_WAIT_MS;
  private timer = 0;
  private listeners = new Set<(state: Connection) => void>();
  state: Connection = "connecting";

  // Calls `call` for each message until the returned function is called.
  subscribe(
    fields: Record<string, unknown>,
    call: (message: Message) => void,
    done?: () => void,
  ): () => void {
    const number = this.next++;
    this.subscriptions.set(number, { fields, call, done });
    this.connect();
    this.send(number);
    return () => {
      if (!this.subscriptions.delete(number)) return;
      if (this.socket?.readyState === WebSocket.OPEN)
        this.socket.send(JSON.stringify({ unsubscribe: number }));
    };
  }

  watchState(call: (state: Connection) => void): () => void {
    this.listeners.add(call);
    call(this.state);
    return () => {
      this.listeners.delete(call);
    };
  }

  close() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.subscriptions.clear();
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }

  private setState(state: Connection) {
    if (state === this.state) return;
    this.state = state;
    for (const call of this.listeners) call(state);
  }

  private connect() {
    if (this.socket || !session.token) return;
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/api/v1/watch`, [
      "shoal.v1",
      `shoal.token.${session.token}`,
    ]);
    this.socket = socket;
    socket.onopen = () => {
      this.wait = FIRST_WAIT_MS;
      this.setState("open");
      for (const number of this.subscriptions.keys()) this.send(number);
    };
    socket.onmessage = (event) => this.receive(String(event.data));
    socket.onclose = () => this.lost(socket);
  }

  private lost(socket: WebSocket) {
    if (this.socket !== socket) return;
    this.socket = null;
    this.setState("lost");
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.connect(), this.wait);
    this.wait = Math.min(2 * this.wait, LONGEST_WAIT_MS);
  }

  private send(number: number) {
    const subscription = this.subscriptions.get(number);
    if (!subscription || this.socket?.readyState !== WebSocket.OPEN) return;
    const { fields, last } = subscription;
    this.socket.send(
      JSON.stringify({ subscribe: number, ...fields, ...(last ? { after: last } : {}) }),
    );
  }

  private receive(text: string) {
    const message = JSON.parse(text) as {
      sub?: number;
      done?: number;
      event?: string;
      id?: string;
      data?: unknown;
      status?: number;
    };
    if (message.done !== undefined) {
      const subscription = this.subscriptions.get(message.done);
      // Only a job's subscription has an end of its own; another one ends with the server.
      if (subscription?.fields.job !== undefined) this.subscriptions.delete(message.done);
      subscription?.done?.();
      return;
    }
    const number = message.sub ?? 0;
    const subscription = this.subscriptions.get(number);
    if (message.status !== undefined) {
      // Refused: for now if the server is busy or just starts, else for good.
      if (message.status >= 500) setTimeout(() => this.send(number), AGAIN_MS);
      else this.subscriptions.delete(number);
      return;
    }
    if (!subscription || !message.event) return;
    if (message.id) subscription.last = message.id;
    subscription.call({
      event: message.event,
      data: message.data,
      ...(message.id ? { id: message.id } : {}),
    });
  }
}

export const live = new Live();
