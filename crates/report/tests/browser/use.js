// Last in the page: does what a reader does, and gives what went wrong to the page around this one.
(function () {
  'use strict';
  function demand(holds, words) { if (!holds) faults.push(words); }
  function all(root, selector) { return [].slice.call(root.querySelectorAll(selector)); }
  function send(element, type, options) {
    var Kind = type.indexOf('pointer') === 0 ? PointerEvent : type.indexOf('key') === 0 ? KeyboardEvent : MouseEvent;
    element.dispatchEvent(new Kind(type, Object.assign({ bubbles: true, cancelable: true }, options)));
  }
  function visible(element) { return element.getBoundingClientRect().width > 0; }

  var wide = document.documentElement;
  demand(wide.scrollWidth <= wide.clientWidth, 'the page is ' + wide.scrollWidth + ' px wide in a window of ' + wide.clientWidth);

  // Pointed at in its middle, a chart shows the moment and each line's value there; left, it shows none.
  // One of a search that tried nothing has no points.
  var figures = all(document, 'figure[data-at]').filter(function (figure) { return figure.dataset.at !== ''; });
  figures.forEach(function (figure) {
    var name = figure.dataset.group + ' ' + figure.id, moment = figure.querySelector('.moment');
    var pictures = all(figure, ':scope > svg').filter(visible);
    demand(pictures.length === 1, name + ': ' + pictures.length + ' pictures are shown');
    if (pictures.length !== 1) return;
    var picture = pictures[0], box = picture.getBoundingClientRect(), cursor = picture.querySelector('.cursor');
    var outputs = all(figure, '.legend output'), labels = figure.dataset.labels.split('|');
    demand(outputs.length > 0, name + ': no line has a legend');
    send(picture, 'pointermove', { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 });
    demand(labels.indexOf(moment.textContent) >= 0, name + ': `' + moment.textContent + '` is pointed at');
    demand(outputs.every(function (output) { return output.textContent !== ''; }), name + ': a line shows no value');
    demand(getComputedStyle(cursor).visibility === 'visible', name + ': the cursor is hidden');
    var x = +cursor.getAttribute('x1'), first = +picture.dataset.left, last = +picture.dataset.right;
    demand(x >= first && x <= last && x === +cursor.getAttribute('x2'), name + ': the cursor is at ' + x);
    figures.filter(function (other) { return other.dataset.group === figure.dataset.group; }).forEach(function (other) {
      demand(other.querySelector('.moment').textContent !== '', other.id + ' does not follow ' + name);
    });
    send(picture, 'pointerleave', {});
    demand(moment.textContent === '' && getComputedStyle(cursor).visibility === 'hidden', name + ': it still shows a moment');

    all(figure, '.legend [data-line]').forEach(function (item) {
      var button = item.querySelector('[role=button]');
      var line = all(picture, '[data-line="' + item.dataset.line + '"]');
      function shown() { return line.filter(function (path) { return getComputedStyle(path).display !== 'none'; }).length; }
      demand(line.length > 0, name + ': the legend names a line that is not drawn');
      send(item, 'click', {});
      demand(shown() === 0 && button.getAttribute('aria-pressed') === 'false', name + ': a click leaves the line');
      send(button, 'keydown', { key: 'Enter' });
      demand(shown() === line.length && button.getAttribute('aria-pressed') === 'true', name + ': Enter does not bring it back');
    });
  });

  // A click on a head sorts by its column, the largest first; a second click turns it round.
  var tables = all(document, 'table.sortable');
  tables.forEach(function (table) {
    var body = table.tBodies[0], count = body.rows.length;
    [].slice.call(table.tHead.rows[0].cells).forEach(function (head, column) {
      function keys() {
        return [].slice.call(body.rows).map(function (row) {
          var cell = row.cells[column];
          return cell.dataset.sort === undefined ? cell.textContent : +cell.dataset.sort;
        });
      }
      function ordered(down) {
        return keys().every(function (key, row, whole) { return row === 0 || (down ? whole[row - 1] >= key : whole[row - 1] <= key); });
      }
      send(head, 'click', {});
      demand(head.getAttribute('aria-sort') === 'descending' && ordered(true), head.textContent + ': not sorted down: ' + keys());
      send(head, 'click', {});
      demand(head.getAttribute('aria-sort') === 'ascending' && ordered(false), head.textContent + ': not sorted up: ' + keys());
    });
    demand(table.tHead.querySelectorAll('[aria-sort]').length === 1, 'several columns say that they are sorted by');
    demand(body.rows.length === count, 'rows were lost: ' + body.rows.length + ' of ' + count);
  });

  var print = / print$/.test(window.name);
  all(document, 'table').forEach(function (table) { demand(table.closest('.scroll'), 'a table without a box: ' + table.textContent.slice(0, 40)); });
  // What is wider than its box is shaded at the edge that hides the rest; on paper there is no such box.
  all(document, '.scroll').forEach(function (box) {
    var style = getComputedStyle(box), words = box.textContent.slice(0, 40);
    if (print) demand(box.scrollWidth <= box.clientWidth + 1, 'on paper a table of ' + box.scrollWidth + ' px is cut at ' + box.clientWidth + ': ' + words);
    else demand(style.overflowX === 'auto' && /gradient/.test(style.backgroundImage), 'no cue at a wide table: ' + words);
  });
  all(document, 'body *').forEach(function (element) {
    if (element.closest('.scroll, pre, svg, .unseen')) return;
    var box = element.getBoundingClientRect();
    demand(box.right <= wide.clientWidth + 1 && box.left >= -1, element.tagName + ' reaches out of the page: ' + element.textContent.slice(0, 40));
  });
  all(document, '.tile').forEach(function (tile) { demand(tile.scrollWidth <= tile.clientWidth, 'a tile is too narrow: ' + tile.textContent); });

  // Texts of a picture do not stand on each other.
  all(document, 'svg[role=img]').filter(visible).forEach(function (picture) {
    var boxes = all(picture, 'text').map(function (text) { return { words: text.textContent, box: text.getBoundingClientRect() }; });
    boxes.forEach(function (one, at) {
      boxes.slice(at + 1).forEach(function (other) {
        var across = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
        var down = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
        demand(across < 3 || down < 5, 'texts overlap in ' + (picture.closest('figure') || {}).id + ': ' + one.words + ' | ' + other.words);
      });
    });
  });

  var ids = all(document, '[id]').map(function (element) { return element.id; });
  demand(new Set(ids).size === ids.length, 'two elements have one id: ' + ids.filter(function (id, at) { return ids.indexOf(id) !== at; }));
  all(document, 'a[href^="#"]').forEach(function (link) {
    demand(document.getElementById(link.getAttribute('href').slice(1)), link.getAttribute('href') + ' leads nowhere');
  });

  // Contrast as WCAG 2 counts it, 4.5 for each text. What is greyed is greyed on purpose.
  function rgb(colour) {
    var numbers = (colour.match(/[\d.]+/g) || []).map(Number), is255 = /^rgb/.test(colour);
    return { parts: numbers.slice(0, 3).map(function (part) { return is255 ? part / 255 : part; }), alpha: numbers.length > 3 ? numbers[3] : 1 };
  }
  function light(parts) {
    var linear = parts.map(function (part) { return part <= 0.03928 ? part / 12.92 : Math.pow((part + 0.055) / 1.055, 2.4); });
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  }
  // The ground of an element is its own, or that of the element around it; likewise what is greyed.
  var around = new Map([[null, { ground: 1, greyed: false }]]);
  function surroundings(element) {
    if (!around.has(element)) {
      var style = getComputedStyle(element), outer = surroundings(element.parentElement), own = rgb(style.backgroundColor);
      around.set(element, { ground: own.alpha > 0.99 ? light(own.parts) : outer.ground, greyed: outer.greyed || +style.opacity < 1 });
    }
    return around.get(element);
  }
  all(document, 'body *').forEach(function (element) {
    var own = [].some.call(element.childNodes, function (node) { return node.nodeType === 3 && node.textContent.trim() !== ''; });
    if (!own || element.matches('script, style, .part-label, title') || !element.getClientRects().length || surroundings(element).greyed) return;
    var style = getComputedStyle(element), isDrawn = element.closest('svg');
    var text = light(rgb(isDrawn ? style.fill : style.color).parts), below = surroundings(element).ground;
    var contrast = (Math.max(text, below) + 0.05) / (Math.min(text, below) + 0.05);
    demand(contrast >= 4.5, 'contrast ' + contrast.toFixed(2) + ' of ' + element.tagName + ' ' + (element.getAttribute('class') || '') + ': ' + element.textContent.slice(0, 30));
  });

  var lines = [figures.length + ' charts, ' + tables.length + ' tables'];
  faults.forEach(function (fault) { lines.push('FAULT: ' + fault); });
  parent.postMessage(lines.join('\n'), '*');
})();
