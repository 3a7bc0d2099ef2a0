/** Colours of labels: classes k0 … k11, given out in the order of the label set. */

const COLOURS = 12;
const given = new Map();

/** Keep the colours that labels have, and give new labels the next ones. */
export function colourLabels(labels) {
  for (const label of labels) if (!given.has(label)) given.set(label, given.size % COLOURS);
}

/** The class of a label; of one that is in no label set (outside) the grey one. */
export function colour(label) {
  return given.has(label) ? `k k${given.get(label)}` : "k";
}
