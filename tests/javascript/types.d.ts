// What the kernel sends, and what a page has of it: the names by which the comments of the JavaScript speak.

/** The page's side of a widget: traits by name, and messages. */
interface Model {
  get(trait: string): any;
  send(message: object): void;
  on(event: string, listener: (...args: any[]) => void): void;
  off(event: string, listener: (...args: any[]) => void): void;
}

/** What makes requests, and is told what becomes of them. */
interface Part {
  root: HTMLElement;
  say(text: string, tone?: string): void;
  die(): void;
}

/** A part that wishes: one request at a time. */
interface WishingPart extends Part {
  next(): Wish | undefined;
}

interface Wish {
  message: Message;
  then?: string;
  /** Whether it fits what is shown to the page. */
  isFit?: boolean;
  from?: Element | null;
}

interface Message {
  type: string;
  [fact: string]: any;
}

/** What a scan has found of several weights, of which the first has a number and a name. */
interface Finding {
  text: string;
  what: string;
  isAlarm: boolean;
  number: number;
  name: string;
  more: number;
  goal: string;
}

/** A window of values; `null` stands for an axis that the tensor does not have. */
interface SeenWindow {
  /** The labels of tensors that take turns, and which one is seen. */
  faces: string[];
  face?: number;
  /** What is known not to be among the values. */
  absent: string[];
  /** Of a part of a tensor that other ranks have too: which indices of that are seen, and where each axis begins. */
  in_whole?: { places: number[][]; origins: (number | null)[] } | null;
  /** The expression of the whole tensor, empty where none reaches it. */
  whole: string;
  shape: number[];
  axes: (number | null)[];
  corner: number[];
  size: [number, number];
  part: number;
  num_parts: number;
  texts: string[];
  exact: string[];
  show: number[] | null;
  dtype: string;
  device: string;
  scale: [number, number];
  legend: string;
  index: string;
  numpy: string;
  torch: string;
  bound: string;
  text: string;
  position: string;
  overview: string;
}

/** A value of a call under one heading: what has made it has a number. */
/** One call that was opened; `html` is its static card. */
interface SeenCall {
  name: string;
  code: string;
  html: string;
}
