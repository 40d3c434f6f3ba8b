// The table of %tensors, sorted and searched.

import { dockingEach } from "../page/docking.js";
import { OWN, Sorter } from "./sorter.js";

export default () => dockingEach(Sorter, OWN);
