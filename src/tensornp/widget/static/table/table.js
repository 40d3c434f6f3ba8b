// A table of the extension that sorts and filters its rows.

import { docking } from "../page/docking.js";
import { Sorter } from "./sorter.js";

export default () => docking(Sorter);
