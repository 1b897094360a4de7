// Pictures of machines: no line passes through a box at which it does not end.
#include <gmock/gmock.h>

#include <cstdio>
#include <regex>
#include <sstream>

#include "topologies/base/strict_yaml.h"
#include "topologies/readers/catalog.h"
#include "topologies/readers/topology_reader.h"
#include "topologies/views/topology_text.h"

namespace tandem {
namespace {

struct Box {
  std::string name;
  double x = 0, y = 0, width = 0, height = 0;
  bool contains(double at_x, double at_y) const {
    return at_x > x && at_x < x + width && at_y > y && at_y < y + height;
  }
};

struct Drawn {
  std::string title;  // "gpu0 - pcie0: pcie 24 GB/s"
  std::vector<std::pair<double, double>> points{};
};

std::vector<Box> boxes_of(const std::string& svg) {
  static const std::regex kBox(
      "<g><title>([^:]*):[^<]*</title><rect x=\"([-0-9]+)\" y=\"([-0-9]+)\" width=\"([0-9]+)\" height=\"([0-9]+)\"");
  std::vector<Box> boxes;
  for (std::sregex_iterator one(svg.begin(), svg.end(), kBox), end; one != end; ++one) {
    boxes.push_back(
        {(*one)[1], std::stod((*one)[2]), std::stod((*one)[3]), std::stod((*one)[4]), std::stod((*one)[5])});
  }
  return boxes;
}

// Returns points along a path of straight lines and curves of second degree, close to each other.
std::vector<std::pair<double, double>> points_of(const std::string& path) {
  std::vector<std::pair<double, double>> points;
  std::string spaced;
  for (const char c : path)
    spaced += std::isalpha(static_cast<unsigned char>(c)) != 0 ? std::string{' ', c, ' '} : std::string{c};
  std::istringstream words(spaced);
  double x = 0, y = 0;
  for (std::string command; words >> command;) {
    double control_x = 0, control_y = 0, to_x = 0, to_y = 0;
    if (command == "Q") words >> control_x >> control_y;
    words >> to_x >> to_y;
    for (int i = 1; command != "M" && i <= 200; ++i) {
      const double t = i / 200.0, s = 1 - t;
      if (command == "L") points.emplace_back(s * x + t * to_x, s * y + t * to_y);
      if (command == "Q") {
        points.emplace_back(s * s * x + 2 * s * t * control_x + t * t * to_x,
                            s * s * y + 2 * s * t * control_y + t * t * to_y);
      }
    }
    x = to_x;
    y = to_y;
  }
  return points;
}

std::vector<Drawn> lines_of(const std::string& svg) {
  static const std::regex kLine("<path d=\"([^\"]*)\"[^>]*><title>([^<]*)</title>");
  std::vector<Drawn> lines;
  for (std::sregex_iterator one(svg.begin(), svg.end(), kLine), end; one != end; ++one) {
    lines.push_back({(*one)[2], points_of((*one)[1])});
  }
  return lines;
}

// Returns "gpu0 - pcie0 through nic0" for each line and each box that it crosses.
std::vector<std::string> crossings_in(const std::string& svg) {
  std::vector<std::string> crossings;
  const std::vector<Box> boxes = boxes_of(svg);
  for (const Drawn& line : lines_of(svg)) {
    const std::string ends = line.title.substr(0, line.title.find(':'));
    const std::size_t dash = ends.find(" - ");
    for (const Box& box : boxes) {
      if (box.name == ends.substr(0, dash) || box.name == ends.substr(dash + 3)) continue;
      const bool crosses =
          std::ranges::any_of(line.points, [&](const auto& point) { return box.contains(point.first, point.second); });
      if (crosses) crossings.push_back(ends + " through " + box.name);
    }
  }
  return crossings;
}

std::size_t links_of_first_machine(const Topology& topology) {
  std::size_t count = 0;
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    const Link link = topology.link(index);
    count += topology.worker(link.from) == 0 && topology.worker(link.to) == 0 ? 1 : 0;
  }
  return count;
}

void expect_clear(const Topology& topology) {
  const std::string svg = topology_svg(topology);
  EXPECT_THAT(crossings_in(svg), testing::IsEmpty()) << topology.name();
  EXPECT_EQ(lines_of(svg).size(), links_of_first_machine(topology)) << topology.name();
  const std::vector<Box> boxes = boxes_of(svg);
  double width = 0, height = 0;
  std::sscanf(svg.c_str() + svg.find("viewBox=\"0 0 "), "viewBox=\"0 0 %lf %lf", &width, &height);
  for (const Box& box : boxes) {
    EXPECT_TRUE(box.x >= 0 && box.x + box.width <= width && box.y >= 0 && box.y + box.height <= height) << box.name;
    for (const Box& other : boxes) {
      const bool overlap = &box != &other && box.x < other.x + other.width && other.x < box.x + box.width &&
                           box.y < other.y + other.height && other.y < box.y + box.height;
      EXPECT_FALSE(overlap) << topology.name() << ": " << box.name << " over " << other.name;
    }
  }
  for (const Drawn& line : lines_of(svg)) {
    for (const auto& [x, y] : line.points) {
      ASSERT_TRUE(x >= 0 && x <= width && y >= 0 && y <= height) << topology.name() << ": " << line.title;
    }
  }
}

TEST(TopologySvg, NoLinePassesThroughABox) {
  for (const std::string& name : catalog_names()) expect_clear(load_catalog_node(name));
}

TEST(TopologySvg, NoLinePassesThroughABoxOfMachinesFromElsewhere) {
  for (const char* file :
       {"made/hwloc.xml", "made/nvidia_smi.txt", "nccl/rccl_topo_8p6l.xml", "nccl/rccl_topo_8p_rome.xml",
        "nccl/azure_ndv4-topo.xml", "nccl/aws_p4d-24xl-topo.xml", "nccl/rccl_topo_16p1h.xml"}) {
    ImportOptions options;
    if (std::string(file) == "made/nvidia_smi.txt") options.gpu = "h100";
    expect_clear(import_topology(std::string(TANDEM_SOURCE_DIR "/tests/topologies/samples/") + file, options).topology);
  }
}

}  // namespace
}  // namespace tandem
