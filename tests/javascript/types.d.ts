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

/** A column of a tree. */
interface Column {
  name: string;
  heading: string;
  isRight: boolean;
  isLargeFirst: boolean;
  /** What its figures mean, behind its heading. */
  rule?: string;
  isSortable: boolean;
  /** In which place it is given room, 0 first. */
  rank: number;
  /** The characters that it has room for, and whether it has room for a mark beside them. */
  width: number;
  hasMark: boolean;
  isFixed: boolean;
  /** What is looked for among the values of a line, whose figure it is. */
  goal?: string;
  /** Whether there is so little room that what stands beside names is short. */
  isNarrow?: boolean;
  /** The pixels that names have at least. */
  roomPx?: number;
}

/** A line of it: what can be shown by its `number`, what opens by its `branch`; -1 where there is none. */
interface Line {
  /** The name from the outermost on, of which a cell may have a part. */
  wholeName: string;
  cells: Record<string, string>;
  branch: number;
  parent: number;
  level: number;
  position: number;
  size: number;
  open: boolean;
  number: number;
  picture: { src?: string; alt?: string };
  title: string;
  /** By their columns, what is behind what a line says of several. */
  titles: Record<string, string>;
  alarm: { text: string; number: number; goal: string; short?: string } | null;
  /** Of several, the one that stands out among them. */
  odd: { text: string; title: string; number: number; goal: string } | null;
  isQuiet: boolean;
  className: string;
  mark: [number, number] | null;
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

/** The lines that are seen, of `total`, and what is said of all. */
interface SeenLines {
  total: number;
  first: number;
  /** The line of what was to be seen, -1 where none was; and what is open then. */
  revealed: number;
  toggled: number[];
  lines: Line[];
  columns: Column[];
  choices: { column: string; label: string; values: string[]; shown?: string[] }[];
  isList: boolean;
  marked: string;
  /** What the marks in that column are. */
  bar: string;
  nothing: string;
  /** What lists those in which there is what was sought among the names. */
  instead?: { text: string; filters: Record<string, string> } | null;
  text: string;
  code: string;
  /** What a scan of all costs, where there is one. */
  cost?: string;
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
