// Lets the pictures with two axes be zoomed. Without this script, or without Dygraph, the page is complete as it is.
'use strict';

const kUnits = {
  // Each a list of [factor, name], the greatest first; the order is that of Unit in axis.h.
  1: [[1e9, 's'], [1e6, 'ms'], [1e3, 'us'], [1, 'ns']],
  2: [[2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']],
  3: [[1e9, 'GB/s'], [1e6, 'MB/s'], [1e3, 'kB/s'], [1, 'B/s']],
  4: [[0.01, '%']],
  5: [[1, '']],
};

function textOf(value, unit) {
  const units = kUnits[unit];
  if (!units) return String(Number(value.toPrecision(4)));
  const [factor, name] = units.find(([factor]) => Math.abs(value) >= factor) ?? units[units.length - 1];
  return `${Number((value / factor).toPrecision(4))} ${name}`.trim();
}

// Marks: 0 line, 1 stairs, 2 dots, 3 dashes.
function optionsOf(mark) {
  return {
    strokeWidth: mark === 2 ? 0 : 1.6,
    drawPoints: mark !== 3,
    pointSize: mark === 2 ? 4 : 2,
    stepPlot: mark === 1,
    strokePattern: mark === 3 ? [6, 4] : null,
  };
}

// What the pointer is at: the x, and the values there.
function readingText(x, points, data) {
  const values = points.filter(p => Number.isFinite(p.yval));
  return [textOf(x, data.x.unit), ...values.map(p => `${p.name}: ${textOf(p.yval, data.y.unit)}`)].join(', ');
}

function chartOf(figure, element, reading) {
  const data = JSON.parse(figure.querySelector('script').textContent);
  const names = Array.from(figure.querySelectorAll('.names li'), (item, i) => `${item.textContent}${'\u200b'.repeat(i)}`);
  const style = getComputedStyle(document.documentElement);
  return new Dygraph(element, data.rows, {
    labels: ['x', ...names],
    colors: names.map((_, i) => style.getPropertyValue(`--s${i % 6}`).trim()),
    series: Object.fromEntries(names.map((name, i) => [name, optionsOf(data.marks[i])])),
    connectSeparatedPoints: true,
    logscale: data.y.log,
    axes: {
      x: {logscale: data.x.log, axisLabelFormatter: v => textOf(v, data.x.unit), valueFormatter: v => textOf(v, data.x.unit)},
      y: {axisLabelWidth: 80, axisLabelFormatter: v => textOf(v, data.y.unit), valueFormatter: v => textOf(v, data.y.unit)},
    },
    highlightCallback: (event, x, points) => { reading.textContent = readingText(x, points, data); },
    unhighlightCallback: () => { reading.textContent = kHint; },
    animatedZooms: false,
  });
}

const kHint = 'Drag to zoom, double-click to see all.';

function addZoom(figure) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = 'Zoom';
  const element = document.createElement('div');
  element.className = 'zoom';
  const reading = document.createElement('p');
  reading.textContent = kHint;
  element.hidden = reading.hidden = true;
  const picture = figure.querySelector('.scrolls');
  let chart = null;
  button.addEventListener('click', () => {
    element.hidden = reading.hidden = !element.hidden;
    picture.hidden = !element.hidden;
    button.textContent = element.hidden ? 'Zoom' : 'Back to the picture';
    if (!element.hidden && !chart) {
      chart = chartOf(figure, element, reading);
      figure.chart = chart;
    }
  });
  figure.append(button, reading, element);
}

if (typeof Dygraph !== 'undefined') {
  // Its legend has inline styles, which the page forbids.
  Dygraph.PLUGINS = Dygraph.PLUGINS.filter(plugin => plugin !== Dygraph.Plugins.Legend);
  document.querySelectorAll('figure.xy').forEach(addZoom);
}

// Perfetto's page takes a trace in a message, once it has answered that it listens.
async function openTrace() {
  const kViewer = 'https://ui.perfetto.dev';
  const viewer = open(kViewer);
  const buffer = await (await fetch('trace.json')).arrayBuffer();
  const asking = setInterval(() => viewer.postMessage('PING', kViewer), 50);
  addEventListener('message', function answered(event) {
    if (event.origin !== kViewer || event.data !== 'PONG') return;
    clearInterval(asking);
    removeEventListener('message', answered);
    viewer.postMessage({perfetto: {buffer, title: document.title}}, kViewer);
  });
}

document.getElementById('open-trace')?.addEventListener('click', openTrace);

addEventListener('beforeprint', () => document.querySelectorAll('details').forEach(one => { one.open = true; }));
