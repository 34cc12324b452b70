#include <executorch/devtools/report/page.h>

namespace executorch::devtools {

const char kPageStyle[] = R"(
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1080px;margin:0 auto;padding:28px 24px 80px}
header{display:flex;align-items:flex-start;gap:16px;justify-content:space-between}
h1{font-size:22px;line-height:1.3;margin:0;overflow-wrap:anywhere}
h2{font-size:16px;margin:44px 0 4px}
p.note{margin:0 0 12px;color:var(--muted)}
button,input{font:inherit;color:inherit;background:var(--raised);border:1px solid var(--grid);
border-radius:6px;padding:4px 10px}
button{cursor:pointer;white-space:nowrap}
nav{margin:10px 0 0} nav a{color:var(--accent);text-decoration:none;margin-right:16px}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(158px,1fr));gap:12px;margin:20px 0}
.card{background:var(--raised);border:1px solid var(--grid);border-radius:8px;padding:10px 14px}
.card b{display:block;font-size:20px;line-height:1.35;font-variant-numeric:tabular-nums}
.card span{color:var(--muted);font-size:12.5px}
.scroll{overflow:auto;border:1px solid var(--grid);border-radius:8px}
.scroll.tall{max-height:680px}
figure{margin:0} figure svg{display:block;max-width:100%;height:auto}
.graph svg{display:block;max-width:none;margin:0 auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:4px 10px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--grid)}
tr:last-child td{border-bottom:0}
th{position:sticky;top:0;background:var(--raised);font-weight:600;color:var(--muted);font-size:12.5px}
table.sortable th{cursor:pointer} th[data-order]::after{content:" \2191"}
th[data-order="-1"]::after{content:" \2193"}
th.l,td.l{text-align:left} td.l{max-width:340px;overflow:hidden;text-overflow:ellipsis}
td.bar{width:200px;padding-right:14px}
td.bar i{display:block;height:10px;border-radius:2px;min-width:1px;background:var(--accent)}
.dim{color:var(--muted)}
.chips{display:flex;flex-wrap:wrap;gap:4px 16px;margin:8px 0 0;font-size:12.5px;color:var(--muted)}
.chips i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:6px}
ol.losses{margin:0;padding-left:20px} ol.losses li{margin:0 0 6px;overflow-wrap:anywhere}
code{font:12.5px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
@media print{button,input,nav{display:none}.scroll,.scroll.tall{max-height:none}}
)";

const char kPageScript[] = R"(
'use strict';
for (const table of document.querySelectorAll('table.sortable')) {
  const body = table.tBodies[0];
  const value = (row, i) => {
    const cell = row.cells[i];
    return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
  };
  [...table.tHead.rows[0].cells].forEach((head, i) => head.addEventListener('click', () => {
    const order = head.dataset.order === '-1' ? 1 : -1;
    for (const other of table.tHead.rows[0].cells) delete other.dataset.order;
    head.dataset.order = order;
    const rows = [...body.rows].sort((a, b) => {
      const x = value(a, i), y = value(b, i);
      return order * (typeof x === 'number' ? x - y : String(x).localeCompare(String(y)));
    });
    body.append(...rows);
  }));
}
const filter = document.querySelector('#filter');
if (filter) {
  const rows = [...document.querySelector('#instructions tbody').rows];
  filter.addEventListener('input', () => {
    const words = filter.value.toLowerCase().split(/\s+/);
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
}
document.querySelector('#theme').addEventListener('click', () => {
  const root = document.documentElement;
  const dark = getComputedStyle(root).colorScheme === 'dark';
  root.dataset.theme = dark ? 'light' : 'dark';
});
)";

}  // namespace executorch::devtools
