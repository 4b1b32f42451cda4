// Which member has which colour and letter. A member keeps what it got for as long as the page is open, so that the picture
// stays readable while others come and go. Letters say the same as colours, for eyes that do not tell colours apart.

/** So many colours; from there on they come again with a pattern. */
export const COLOURS = 8;

export class Owners {
  #marks = new Map();
  #names = new Map();

  /** Takes note of the members that are there, in the order in which they shall be marked. */
  note(members) {
    const here = new Set(members.map((member) => member.member));
    for (const member of members) {
      if (member.client_id) this.#names.set(member.member, member.client_id);
      if (!this.#marks.has(member.member)) this.#marks.set(member.member, this.#free(here));
    }
  }

  /** The lowest mark that no member that is here has; members that are gone give theirs up only when it is needed. */
  #free(here) {
    const taken = new Set();
    for (const [id, mark] of this.#marks) if (here.has(id)) taken.add(mark);
    const everGiven = new Set(this.#marks.values());
    for (let mark = 0; mark < COLOURS; mark++) if (!everGiven.has(mark)) return mark;
    let mark = 0;
    while (taken.has(mark)) mark += 1;
    return mark;
  }

  /** The number of a member's mark; null for nobody. */
  mark(id) {
    if (id == null) return null;
    if (!this.#marks.has(id)) this.#marks.set(id, this.#free(new Set(this.#marks.keys())));
    return this.#marks.get(id);
  }

  /** "A" to "Z", then "A2" ... */
  letter(id) {
    const mark = this.mark(id);
    if (mark == null) return "";
    const round = Math.floor(mark / 26);
    return String.fromCharCode(65 + (mark % 26)) + (round === 0 ? "" : String(round + 1));
  }

  /** The class that gives the colour, and the pattern from the ninth member on. */
  className(id) {
    const mark = this.mark(id);
    if (mark == null) return "owner-none";
    return `owner-${mark % COLOURS}${mark >= COLOURS ? " owner-again" : ""}`;
  }

  /** All that have a mark. */
  ids() {
    return [...this.#marks.keys()];
  }

  /** What people call the member: its client id with its letter. */
  name(id) {
    if (id == null) return "nobody";
    const name = this.#names.get(id);
    return name ? `${this.letter(id)} ${name}` : this.letter(id);
  }
}
